"""What the runs of a table were trained with, from the files beside their adapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from entropy_valley import files
from entropy_valley.late import pandas as pd

COLUMNS = ["backbone", "direction", "seed", "key", "value"]
# How the training ran and what it had, beside the settings that its adapter depends on.
RAN = ("processes", "micro_tokens", "steps", "pairs", "trainable_parameters")


def trainings(adapters: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each run and setting; ``adapters`` are runs with the ``path`` of their ``adapter.json``.

    A key within a block, or a place in a list, is behind its name: ``lora_rank``, ``betas_1``. Of an adapter that was
    not trained here, only the keys that its file has.
    """
    rows = []
    for adapter in adapters:
        facts, run = files.read_json(adapter["path"]), {key: adapter[key] for key in COLUMNS[:3]}
        spec = facts.get("spec", {})
        settings = {**spec.get("training", {}), **{key: spec[key] for key in ("precision",) if key in spec}}
        settings |= {key: facts[key] for key in RAN if key in facts}
        rows += [{**run, "key": key, "value": value} for key, value in _flat("", settings)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values of nested mappings and lists, by joined names; nothing for null."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}_{key}" if name else key, inner)
    elif isinstance(value, list):
        yield from _flat(name, {str(place): inner for place, inner in enumerate(value, 1)})
    elif value is not None:
        yield name, value

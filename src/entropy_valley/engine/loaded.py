"""The model of a job and of those beside it: loaded when it must be, and once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley.model.prompt import attention_of

if TYPE_CHECKING:
    from entropy_valley.engine.job import How
    from entropy_valley.engine.ledger import Ledger
    from entropy_valley.model.load import Backbone


def float32_head(spec: Mapping[str, Any]) -> bool:
    """Whether a spec asks for the LM head's logits in float32 beside a model of a lower precision."""
    return spec.get("head_precision") == "float32"


def load(spec: Mapping[str, Any], backbone: Path, adapter: Path | None, device: str) -> Backbone:
    """The model that a job's spec names, from the folders of its checkpoint and its adapter.

    Raises InputError as :func:`~entropy_valley.model.load.load_backbone` does.
    """
    from entropy_valley.model.load import load_backbone

    return load_backbone(
        backbone,
        spec["family"],
        device=device,
        dtype=spec["precision"],
        adapter=adapter,
        merge=spec.get("merge_adapter", True),
        shifted=spec["shifted"],
        float32_head=float32_head(spec),
        attention=attention_of(spec),
    )


class LoadedOnce:
    """The backbone that a spec names, loaded at its first use."""

    def __init__(self, how: How, spec: Mapping[str, Any], ledger: Ledger) -> None:
        self._how, self._spec, self._ledger = how, spec, ledger

    @functools.cached_property
    def backbone(self) -> Backbone:
        import torch

        torch.set_num_threads(self._how.threads)
        self._ledger.count(loads=1)
        return load(self._spec, self._how.backbone, self._how.adapter, self._how.device)

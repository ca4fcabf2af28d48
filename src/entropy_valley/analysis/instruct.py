"""Does an instruction-tuned backbone translate under this protocol? Every variant of its use, measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from entropy_valley import files
from entropy_valley.analysis.losses import read_losses, summarise_losses, uniform_cross_entropy
from entropy_valley.analysis.params import Params, record
from entropy_valley.analysis.scores import collect
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd
from entropy_valley.scoring.sets import read_outputs

REFERENCE = "reference"  # in the place of a method
LOSSES = ("cross_entropy", "loss")  # the masked slots' mean, and as training weighs them
SETTING = ("direction", "testset", "order", "steps", "seed")  # the same for all variants
DESCRIPTION = ("label", "prompt", "training", "shifted", "natural_shift")
COLUMNS = ["backbone", "method", "metric", "value"]


@dataclass(frozen=True)
class Variant:
    """One way to use the backbone: its prompt and training in words, its logits' shift, its adapter's folder if any."""

    label: str
    prompt: str
    training: str
    shifted: bool
    natural_shift: bool
    adapter: str | None


@dataclass(frozen=True)
class InstructParams(Params):
    """Params whose backbones are variants of one, on the sentences of one ``testset`` file."""

    variants: Mapping[str, Variant] = field(default_factory=dict)
    testset: str = ""

    @classmethod
    def parse(cls, value: Mapping[str, Any], required: Iterable[str] = ()) -> Self:
        """As :meth:`Params.parse`; cells of no variant, or of several settings, are an :class:`InputError` too.

        The variants come in the order of the cells: the keys of a rule's JSON are sorted.
        """
        params = super().parse(value, ("variants", "testset", *required))
        variants = {
            name: record(Variant, f"variant {name}", params.variants.get(name, {}))
            for name in dict.fromkeys(cell.backbone for cell in params.cells)
        }
        settings = {tuple(getattr(cell, key) for key in SETTING) for cell in params.cells}
        if len(settings) > 1:
            problem = f"cells of several settings: {sorted(settings)}"
            raise InputError("PARAMS", problem, f"Give one {', '.join(SETTING)}.")
        return dataclasses.replace(params, variants=variants)


def measure(params: InstructParams) -> pd.DataFrame:
    """The tidy numbers: ``backbone``, ``method``, ``metric``, ``value``, and the fields of the backbone's variant.

    Of the training (method ""; nothing where there are no losses): ``vocabulary``, ``uniform_cross_entropy``, of the
    cross-entropy and of the weighted loss the fields of :class:`LossSummary`, as ``cross_entropy_final`` and
    ``loss_final``, and ``cross_entropy_over_uniform``. Of each method: ``sentences``, ``empty_rate``,
    ``mean_characters`` and the system scores. Of the references (backbone ""): the same without scores.
    Raises :class:`InputError` for a missing file or one that does not fit.
    """
    trainings = {name: _training(Path(variant.adapter)) for name, variant in params.variants.items() if variant.adapter}
    outputs = {
        cell: read_outputs(params.testset, cell.translations(), cell.within(cell.translations_file))
        for cell in params.cells
    }
    references = next(iter(outputs.values())).references
    rows = [(name, "", *number) for name, training in trainings.items() for number in training.items()]
    rows += [(c.backbone, c.method, *number) for c, texts in outputs.items() for number in _texts(texts.hypotheses)]
    rows += [("", REFERENCE, *number) for number in _texts(references)]
    scores = collect(params.cells, params.metrics)[COLUMNS]
    numbers = pd.concat([pd.DataFrame(rows, columns=COLUMNS), scores], ignore_index=True)
    described = {key: {name: getattr(variant, key) for name, variant in params.variants.items()} for key in DESCRIPTION}
    return numbers.assign(**{key: numbers["backbone"].map(of_variant) for key, of_variant in described.items()})


def _training(adapter: Path) -> dict[str, float]:
    losses, vocabulary = read_losses(adapter / "losses.csv", LOSSES), _vocabulary(adapter / "adapter.json")
    uniform = uniform_cross_entropy(vocabulary)
    numbers = {"vocabulary": vocabulary, "uniform_cross_entropy": uniform}
    for name in LOSSES:
        summary = dataclasses.asdict(summarise_losses(losses["step"], losses[name]))
        numbers |= {f"{name}_{key}": value for key, value in summary.items()}
    return numbers | {"cross_entropy_over_uniform": numbers["cross_entropy_final"] / uniform}


def _vocabulary(card: Path) -> int:
    size = files.read_json(card).get("vocabulary")
    if not isinstance(size, int) or size < 2:
        raise InputError(card, f"vocabulary is {size!r}, not a number of tokens", "Train the adapter again.")
    return size


def _texts(texts: Sequence[str]) -> list[tuple[str, float]]:
    return [("sentences", len(texts)), ("empty_rate", empty_rate(texts)), ("mean_characters", mean_characters(texts))]


def empty_rate(texts: Sequence[str]) -> float:
    """The share of texts that hold nothing but white space."""
    return sum(not text.strip() for text in texts) / len(texts)


def mean_characters(texts: Sequence[str]) -> float:
    """Mean number of characters (Unicode code points), the empty texts included."""
    return sum(map(len, texts)) / len(texts)

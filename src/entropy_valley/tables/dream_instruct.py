"""The instruction-tuned backbone's table: what each variant of its use lost in training and what it put out."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.config import Experiment, matrix
from entropy_valley.config.params import shifted
from entropy_valley.config.paths import adapter_folder
from entropy_valley.errors import InputError
from entropy_valley.model.adapters import FACTS
from entropy_valley.model.families import find_family
from entropy_valley.scoring.metrics import Metric
from entropy_valley.scoring.sets import read_outputs
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import collect, mean, sample_std
from entropy_valley.tables import formats
from entropy_valley.tables.base import TableReport, testset_file
from entropy_valley.tables.labels import RISING, method
from entropy_valley.tables.render import Column, Group, Note, Row, Section, Table, TableCell

LAST = 10  # optimiser steps at the end of a run that are averaged


@dataclass(frozen=True)
class LossSummary:
    """Nats: of the last step, over the last ``LAST`` steps, and the first lowest with its step."""

    final: float
    last_mean: float
    last_std: float
    minimum: float
    minimum_step: int


def summarise_losses(steps: Sequence[float], losses: Sequence[float]) -> LossSummary:
    """Summarise the losses of optimiser steps, both of shape (steps,), at least one; sample standard deviation."""
    lowest = min(range(len(losses)), key=losses.__getitem__)
    last = losses[-LAST:]
    return LossSummary(losses[-1], mean(last), sample_std(last), losses[lowest], int(steps[lowest]))


def uniform_cross_entropy(vocabulary: int) -> float:
    """log|V|, the mean cross-entropy in nats of giving every token the same probability: exact at every step.

    A loss weighted by 1/t has no such mark: its weights sum to 1 neither at a step nor in expectation. A slot is
    masked with probability t, but one of a sequence's n slots always is, so that a uniform guess loses
    log|V| · (1 + E[(1 - t)^n / (n t)]) in expectation.
    """
    return math.log(vocabulary)


def read_losses(path: Path, columns: Sequence[str]) -> dict[str, list[float]]:
    """The ``step`` and the other columns of a ``losses.csv``.

    Raises :class:`InputError` for a missing file or column, no steps, or what is no finite number.
    """
    names = ("step", *columns)
    table = csv.DictReader(files.read_lines(path))
    rows, absent = list(table), [name for name in names if name not in (table.fieldnames or ())]
    if absent or not rows:
        raise InputError(path, f"no {', '.join(absent) or 'steps'}", "Train the adapter again.")
    return {name: [_number(f"{path}:{line}", name, row[name]) for line, row in enumerate(rows, 2)] for name in names}


def _number(place: str, name: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(place, f"{name} is {text!r}, not a finite number", "Train the adapter again.")
    return value


REFERENCE = "reference"  # in the place of a method
LOSSES = ("cross_entropy", "loss")  # the masked slots' mean, and as training weighs them
DESCRIPTION = ("label", "prompt", "training", "shifted", "natural_shift")
FIELDS = ["backbone", "method", "metric", "value"]


def measure(params: Params) -> pd.DataFrame:
    """The tidy numbers: ``backbone``, ``method``, ``metric``, ``value``, and the fields of the backbone's variant.

    Of the training (method ""; nothing where there are no losses): ``vocabulary``, ``uniform_cross_entropy``, of the
    cross-entropy and of the weighted loss the fields of :class:`LossSummary`, as ``cross_entropy_final`` and
    ``loss_final``, and ``cross_entropy_over_uniform``. Of each method: ``sentences``, ``empty_rate``,
    ``mean_characters`` and the system scores. Of the references (backbone ""): the same without scores.
    Raises :class:`InputError` for a missing file or one that does not fit.
    """
    variants = _variants(params)
    trainings = {name: _training(Path(one["adapter"])) for name, one in variants.items() if one["adapter"]}
    outputs = {
        cell: read_outputs(params["testset"], cell.translations(), cell.within(cell.translations_file))
        for cell in params.cells
    }
    references = next(iter(outputs.values())).references
    rows = [(name, "", *number) for name, training in trainings.items() for number in training.items()]
    rows += [
        (c.backbone, c.method, *number) for c, texts in outputs.items() for number in _described_texts(texts.hypotheses)
    ]
    rows += [("", REFERENCE, *number) for number in _described_texts(references)]
    scores = collect(params.cells, params.metrics)[FIELDS]
    numbers = pd.concat([pd.DataFrame(rows, columns=FIELDS), scores], ignore_index=True)
    described = {key: {name: variant[key] for name, variant in variants.items()} for key in DESCRIPTION}
    return numbers.assign(**{key: numbers["backbone"].map(of_variant) for key, of_variant in described.items()})


def _variants(params: Params) -> dict[str, Mapping[str, Any]]:
    """What each backbone is, in the order of the cells: the keys of a rule's JSON are sorted."""
    return {name: params["variants"][name] for name in dict.fromkeys(cell.backbone for cell in params.cells)}


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


def _described_texts(texts: Sequence[str]) -> list[tuple[str, float]]:
    return [("sentences", len(texts)), ("empty_rate", empty_rate(texts)), ("mean_characters", mean_characters(texts))]


def empty_rate(texts: Sequence[str]) -> float:
    """The share of texts that hold nothing but white space."""
    return sum(not text.strip() for text in texts) / len(texts)


def mean_characters(texts: Sequence[str]) -> float:
    """Mean number of characters (Unicode code points), the empty texts included."""
    return sum(map(len, texts)) / len(texts)


WORSE = "*"  # marks a cross-entropy above that of a uniform guess


class DreamInstruct(TableReport):
    """What each variant of the backbone's use lost in training and put out: sections with and without the shift."""

    caption = (
        "An instruction-tuned backbone under this protocol: plain prompt and chat template, fine-tuned and zero-shot, "
        "each read with and without the shift of its logits by one slot. A row that learns and translates only with "
        "the shift shows that the shift was at fault, not the backbone."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return matrix.instruct_cells(experiment)

    def inputs(self, experiment: Experiment) -> list[str]:
        cells = self.cells(experiment)
        adapters = dict.fromkeys(adapter_folder(experiment, cell.run) for cell in cells)
        facts = [f"{folder}/{FACTS}" for folder in adapters if folder]
        return [*super().inputs(experiment), *facts, testset_file(experiment, cells[0])]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        """What each variant is, and the references."""
        variants = {name: _described(experiment, name) for name in experiment.instruct.backbones}
        return {"testset": testset_file(experiment, cells[0]), "variants": variants}

    def numbers(self, params: Params) -> pd.DataFrame:
        return measure(params)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        by_shift: dict[str, list[Group]] = {}
        for name, variant in _variants(params).items():
            by_shift.setdefault(_heading(variant), []).append(_variant(params, numbers, name))
        sections = tuple(Section(tuple(groups), heading) for heading, groups in by_shift.items())
        return Table(_columns(params), sections, _notes(params, numbers))


def _described(experiment: Experiment, backbone: str) -> dict[str, Any]:
    section, settings = experiment.backbones[backbone], experiment.instruct
    run = matrix.Run(settings.direction, backbone, settings.seed)
    trained_here = experiment.adapters == "trained"  # only then is there a loss to show
    return {
        "label": section.label,
        "prompt": "chat" if section.chat else "plain",
        "training": "none" if section.zero_shot else "LoRA-SFT",
        "adapter": adapter_folder(experiment, run) if trained_here else None,
        "shifted": shifted(experiment, backbone),
        "natural_shift": find_family(section.family).shifted,
    }


def _columns(params: Params) -> tuple[Column, ...]:
    losses = ("Final", "/ log|V|", f"Last {LAST} steps", "Lowest (step)")
    outputs = ("Empty", "Length", params.metric.label)
    return (
        Column("Variant", align="l"),
        *(Column(title, "Training cross-entropy") for title in losses),
        *(Column(title, method(name).short) for name in RISING for title in outputs),
    )


def _heading(variant: Mapping[str, Any]) -> str:
    read = "Logits shifted by one slot" if variant["shifted"] else "Logits not shifted"
    return read + (", as the checkpoint was trained" if variant["shifted"] == variant["natural_shift"] else "")


def _variant(params: Params, numbers: pd.DataFrame, name: str) -> Group:
    """A variant's one row, by its label."""
    outputs = [text for key in RISING for text in _outputs(_numbers(numbers, name, key), params.metric)]
    texts = (*_losses(_numbers(numbers, name, "")), *outputs)
    return Group(params["variants"][name]["label"], (Row(tuple(map(TableCell, texts))),))


def _numbers(numbers: pd.DataFrame, backbone: str, name: str) -> dict[str, float]:
    """A method's numbers by metric; nothing for what was not run, or (method "") has no losses."""
    rows = numbers[(numbers["backbone"] == backbone) & (numbers["method"] == name)]
    return dict(zip(rows["metric"], rows["value"], strict=True))


def _losses(training: Mapping[str, float]) -> tuple[str, str, str, str]:
    """The texts below "Training cross-entropy"."""
    if not training:
        return (formats.NONE,) * 4
    final, mean, minimum = (training[f"cross_entropy_{key}"] for key in ("final", "last_mean", "minimum"))
    marks = [WORSE * (loss > training["uniform_cross_entropy"]) for loss in (final, mean, minimum)]
    return (
        f"{final:.2f}{marks[0]}",
        f"{training['cross_entropy_over_uniform']:.2f}",
        formats.mean_std(mean, training["cross_entropy_last_std"], 2) + marks[1],
        f"{minimum:.2f}{marks[2]} ({training['cross_entropy_minimum_step']:,.0f})",
    )


def _outputs(values: Mapping[str, float], metric: Metric) -> tuple[str, str, str]:
    """The texts below a method."""
    if not values:
        return (formats.NONE,) * 3
    return (
        f"{values['empty_rate']:.1%}",
        f"{values['mean_characters']:.2f}",
        f"{values[metric.name]:.{metric.decimals}f}",
    )


def _notes(params: Params, numbers: pd.DataFrame) -> tuple[Note, ...]:
    """The setting, and how to read the columns."""
    cell, reference = params.cells[0], _numbers(numbers, "", REFERENCE)
    trained = all(variant["adapter"] for variant in params["variants"].values())
    place, sentences = params.place(cell.direction, cell.testset), f"{reference['sentences']:,.0f} sentences"
    return (
        Note(f"{place}, {sentences}; reveal order {cell.order}, T = {cell.steps}; training seed {cell.seed}."),
        *_loss_notes(numbers),
        Note(
            "Empty: share of outputs without text. Length: mean characters of an output, empty ones included; "
            f"the references have {reference['mean_characters']:.2f}."
        ),
        Note("Oracle knows the reference's length: an upper bound."),
        *([] if trained else [Note(f"{formats.NONE}: no losses here: not trained, or a given adapter.")]),
    )


def _loss_notes(numbers: pd.DataFrame) -> list[Note]:
    """What the cross-entropy is, where anything was trained."""
    sizes = numbers.loc[numbers["metric"] == "vocabulary", "value"].unique()
    uniform = ", ".join(f"{uniform_cross_entropy(size):.2f} (|V| = {size:,.0f})" for size in sizes)
    texts = (
        f"Cross-entropy: mean over a step's masked slots, in nats. That of a uniform guess is log|V| = {uniform}.",
        f"{WORSE}: worse than a uniform guess. Last {LAST} steps: mean ± sample standard deviation.",
        "The CSV has the weighted training loss, too; there a uniform guess does not lose log|V|.",
    )
    return list(map(Note, texts)) if uniform else []

"""The instruction-tuned backbone's table: what each variant of its use lost in training and what it put out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from entropy_valley.analysis.instruct import REFERENCE, InstructParams, Variant, measure
from entropy_valley.analysis.losses import LAST, uniform_cross_entropy
from entropy_valley.experiment import Experiment, matrix
from entropy_valley.experiment.params.models import shifted
from entropy_valley.experiment.paths import adapter_folder
from entropy_valley.late import pandas as pd
from entropy_valley.model.adapters import FACTS
from entropy_valley.model.families import find_family
from entropy_valley.reporting import formats
from entropy_valley.reporting.labels import RISING, method
from entropy_valley.reporting.report import TableReport, testset_file
from entropy_valley.reporting.tables import Cell, Column, Group, Note, Row, Section, Table
from entropy_valley.scoring.metrics import Metric

WORSE = "*"  # marks a cross-entropy above that of a uniform guess


class DreamInstruct(TableReport):
    """What each variant of the backbone's use lost in training and put out: sections with and without the shift."""

    caption = (
        "An instruction-tuned backbone under this protocol: plain prompt and chat template, fine-tuned and zero-shot, "
        "each read with and without the shift of its logits by one slot. A row that learns and translates only with "
        "the shift shows that the shift was at fault, not the backbone."
    )
    parsed = InstructParams

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

    def numbers(self, params: InstructParams) -> pd.DataFrame:
        return measure(params)

    def table(self, params: InstructParams, numbers: pd.DataFrame) -> Table:
        by_shift: dict[str, list[Group]] = {}
        for name, variant in params.variants.items():
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


def _columns(params: InstructParams) -> tuple[Column, ...]:
    losses = ("Final", "/ log|V|", f"Last {LAST} steps", "Lowest (step)")
    outputs = ("Empty", "Length", params.metric.label)
    return (
        Column("Variant", align="l"),
        *(Column(title, "Training cross-entropy") for title in losses),
        *(Column(title, method(name).short) for name in RISING for title in outputs),
    )


def _heading(variant: Variant) -> str:
    read = "Logits shifted by one slot" if variant.shifted else "Logits not shifted"
    return read + (", as the checkpoint was trained" if variant.shifted == variant.natural_shift else "")


def _variant(params: InstructParams, numbers: pd.DataFrame, name: str) -> Group:
    """A variant's one row, by its label."""
    outputs = [text for key in RISING for text in _outputs(_numbers(numbers, name, key), params.metric)]
    texts = (*_losses(_numbers(numbers, name, "")), *outputs)
    return Group(params.variants[name].label, (Row(tuple(map(Cell, texts))),))


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


def _notes(params: InstructParams, numbers: pd.DataFrame) -> tuple[Note, ...]:
    """The setting, and how to read the columns."""
    cell, reference = params.cells[0], _numbers(numbers, "", REFERENCE)
    trained = all(variant.adapter for variant in params.variants.values())
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

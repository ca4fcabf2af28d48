"""The instruction-tuned backbone's table: what each variant of its use lost in training and what it put out."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley import files
from entropy_valley.config import matrix
from entropy_valley.config.params import shifted
from entropy_valley.config.paths import adapter_folder
from entropy_valley.model import adapters
from entropy_valley.model.adapters import FACTS
from entropy_valley.model.families import find_family
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.formats import RISING
from entropy_valley.tables.of_results import collect, mean, sample_std
from entropy_valley.tables.pivot import by_key
from entropy_valley.tables.reader import Results, testset_file
from entropy_valley.tables.render import Column, Group, Table, TableSection

LAST = 10  # optimiser steps at the end of a run that are averaged


REFERENCE = "reference"  # in the place of a method
LOSSES = ("cross_entropy", "loss")  # the masked slots' mean, and as training weighs them
DESCRIPTION = ("label", "prompt", "training", "shifted", "natural_shift")
FIELDS = ["backbone", "method", "metric", "value"]
WORSE = "*"  # marks a cross-entropy above that of a uniform guess


class DreamInstruct(TableReport):
    """What each variant of the backbone's use lost in training and put out: sections with and without the shift."""

    caption = (
        "An instruction-tuned backbone under this protocol: plain prompt and chat template, fine-tuned and zero-shot, "
        "each read with and without the shift of its logits by one slot. A row that learns and translates only with "
        "the shift shows that the shift was at fault, not the backbone."
    )
    texts = True
    reads = (testset_file,)

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        return matrix.instruct_cells(self.experiment)

    @functools.cached_property
    def variants(self) -> dict[str, dict[str, Any]]:
        """What each backbone is: the fields of :data:`DESCRIPTION`."""
        names = dict.fromkeys(cell.backbone for cell in self.cells)
        sections = {name: self.experiment.backbones[name] for name in names}
        return {
            name: {
                "label": section.label,
                "prompt": "chat" if section.chat else "plain",
                "training": "none" if section.zero_shot else "LoRA-SFT",
                "shifted": shifted(self.experiment, name),
                "natural_shift": find_family(section.family).shifted,
            }
            for name, section in sections.items()
        }

    def adapters(self, root: str) -> dict[str, str]:
        """The folder of the adapter that each variant decodes with, where it has one; below ``root``."""
        runs = {cell.backbone: cell.run for cell in self.cells}
        folders = {name: adapter_folder(self.experiment, run) for name, run in runs.items()}
        return {name: root + path.removeprefix(self.experiment.results) for name, path in folders.items() if path}

    def trained(self, root: str) -> dict[str, str]:
        """Those that were trained here: only these have losses."""
        return self.adapters(root) if self.experiment.adapters == "trained" else {}

    def inputs(self) -> list[str]:
        root = self.experiment.results
        files = [f"{folder}/{FACTS}" for folder in dict.fromkeys(self.adapters(root).values())]
        files += [f"{folder}/{adapters.LOSSES}" for folder in dict.fromkeys(self.trained(root).values())]
        return [*super().inputs(), *files]

    def facts(self, root: str) -> dict[str, Any]:
        trained = self.trained(root)
        variants = {name: {**variant, "adapter": trained.get(name)} for name, variant in self.variants.items()}
        return super().facts(root) | {"variants": variants}

    def numbers(self, results: Results) -> pd.DataFrame:
        """The tidy numbers: ``backbone``, ``method``, ``metric``, ``value``, and the fields of the backbone's variant.

        Of the training (method ""; nothing where there are no losses): ``vocabulary``, ``uniform_cross_entropy``, of
        the cross-entropy and of the weighted loss what :func:`summarise_losses` says, as ``cross_entropy_final`` and
        ``loss_final``, and ``cross_entropy_over_uniform``. Of each method those of :func:`describe` and the system
        scores. Of the references (backbone ""): the same without scores.
        Raises :class:`InputError` for a missing file or one that does not fit.
        """
        losses = {name: _training(results, path) for name, path in self.trained(results.root).items()}
        outputs = {cell: results.outputs(cell) for cell in self.cells}
        references = next(iter(outputs.values())).references
        rows = [(name, "", *number) for name, training in losses.items() for number in training.items()]
        for cell, texts in outputs.items():
            rows += [(cell.backbone, cell.method, *number) for number in describe(texts.hypotheses).items()]
        rows += [("", REFERENCE, *number) for number in describe(references).items()]
        scores = collect(results, self.cells, self.metrics)[FIELDS]
        numbers = pd.concat([pd.DataFrame(rows, columns=FIELDS), scores], ignore_index=True)
        described = {key: {name: variant[key] for name, variant in self.variants.items()} for key in DESCRIPTION}
        return numbers.assign(**{key: numbers["backbone"].map(of_variant) for key, of_variant in described.items()})

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        by_shift: dict[str, list[Group]] = {}
        values = by_key(numbers, "backbone", "method")
        for name, variant in self.variants.items():
            outputs = [text for key in RISING for text in self._outputs(values.get((name, key), {}))]
            texts = (*_losses(values.get((name, ""), {})), *outputs)
            by_shift.setdefault(_heading(variant), []).append(Group.of(variant["label"], texts))
        sections = [TableSection(groups, heading) for heading, groups in by_shift.items()]
        losses = ("Final", "/ log|V|", f"Last {LAST} steps", "Lowest (step)")
        columns = (
            Column("Variant", align="l"),
            *(Column(title, "Training cross-entropy") for title in losses),
            *(
                Column(title, self.method(name).short)
                for name in RISING
                for title in ("Empty", "Length", self.metric.label)
            ),
        )
        return Table(columns, sections, self._notes(values["", REFERENCE], numbers))

    def _outputs(self, values: Mapping[str, float]) -> tuple[str, str, str]:
        """The texts below a method."""
        if not values:
            return (formats.NONE,) * 3
        score = f"{values[self.metric.name]:.{self.metric.decimals}f}"
        return (f"{values['empty_rate']:.1%}", f"{values['mean_characters']:.2f}", score)

    def _notes(self, reference: Mapping[str, float], numbers: pd.DataFrame) -> tuple[str, ...]:
        """The setting, and how to read the columns."""
        cell = self.cells[0]
        place, sentences = self.place(cell.direction, cell.testset), f"{reference['sentences']:,.0f} sentences"
        all_trained = self.trained("").keys() == self.variants.keys()
        return (
            (
                f"{place}, {sentences}; reveal order {self.order(cell.order)}, T = {cell.steps}; "
                f"training seed {cell.seed}."
            ),
            *_loss_notes(numbers),
            (
                "Empty: share of outputs without text. Length: mean characters of an output, empty ones included; "
                f"the references have {reference['mean_characters']:.2f}."
            ),
            notes.ORACLE,
            *([] if all_trained else [f"{formats.NONE}: no losses here: not trained, or a given adapter."]),
        )


# --- The numbers.


def summarise_losses(steps: Sequence[float], losses: Sequence[float]) -> dict[str, float]:
    """The losses of optimiser steps, both of shape (steps,), at least one: the last, mean and sample deviation of the
    last :data:`LAST`, the first lowest and its step."""
    lowest, last = min(range(len(losses)), key=losses.__getitem__), losses[-LAST:]
    ends = {"final": losses[-1], "last_mean": mean(last), "last_std": sample_std(last)}
    return {**ends, "minimum": losses[lowest], "minimum_step": int(steps[lowest])}


def uniform_cross_entropy(vocabulary: int) -> float:
    """log|V|, the mean cross-entropy in nats of giving every token the same probability: exact at every step.

    A loss weighted by 1/t has no such mark: its weights sum to 1 neither at a step nor in expectation. A slot is
    masked with probability t, but one of a sequence's n slots always is, so that a uniform guess loses
    log|V| · (1 + E[(1 - t)^n / (n t)]) in expectation.
    """
    return math.log(vocabulary)


def _training(results: Results, adapter: str) -> dict[str, float]:
    """Of an adapter's losses."""
    facts, curves = results.file(f"{adapter}/{FACTS}"), results.file(f"{adapter}/{adapters.LOSSES}")
    with files.readable(facts, "description of a training", "Train the adapter again."):
        if (vocabulary := files.read_json(facts)["vocabulary"]) < 2:
            raise ValueError(f"vocabulary is {vocabulary}")
        numbers = {"vocabulary": vocabulary, "uniform_cross_entropy": uniform_cross_entropy(vocabulary)}
    with files.readable(curves, "table of losses", "Train the adapter again."):
        losses = results.csv(curves, float_precision="round_trip")
        for name in LOSSES:
            curve = losses[name].to_numpy(float)
            if not np.isfinite(curve).all():
                raise ValueError(f"{name} is not a finite number at each step")
            summary = summarise_losses(losses["step"].tolist(), curve.tolist())
            numbers |= {f"{name}_{key}": value for key, value in summary.items()}
    return numbers | {"cross_entropy_over_uniform": numbers["cross_entropy_final"] / numbers["uniform_cross_entropy"]}


def describe(texts: Sequence[str]) -> dict[str, float]:
    """Their number, the share of those that hold nothing but white space, and the mean number of characters (Unicode
    code points), the empty texts included."""
    empty, characters = sum(not text.strip() for text in texts), sum(map(len, texts))
    return {
        "sentences": len(texts),
        "empty_rate": empty / len(texts),
        "mean_characters": characters / len(texts),
    }


# --- The layout.


def _heading(variant: Mapping[str, Any]) -> str:
    read = "Logits shifted by one slot" if variant["shifted"] else "Logits not shifted"
    return read + (", as the checkpoint was trained" if variant["shifted"] == variant["natural_shift"] else "")


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


def _loss_notes(numbers: pd.DataFrame) -> Sequence[str]:
    """What the cross-entropy is, where anything was trained."""
    sizes = numbers.loc[numbers["metric"] == "vocabulary", "value"].unique()
    uniform = ", ".join(f"{uniform_cross_entropy(size):.2f} (|V| = {size:,.0f})" for size in sizes)
    texts = (
        f"Cross-entropy: mean over a step's masked slots, in nats. That of a uniform guess is log|V| = {uniform}.",
        f"{WORSE}: worse than a uniform guess. Last {LAST} steps: mean ± sample standard deviation.",
        "The CSV has the weighted training loss, too; there a uniform guess does not lose log|V|.",
    )
    return texts if uniform else ()

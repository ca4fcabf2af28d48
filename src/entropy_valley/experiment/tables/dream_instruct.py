"""The instruction-tuned backbone's table: what each variant of its use lost in training and what it put out."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from entropy_valley.experiment.config.matrix import instruct_cells
from entropy_valley.experiment.config.params import shifted
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.report import Data, Names, Row, Shown, aligned, table
from entropy_valley.experiment.tables.training_tables import adapter_files
from entropy_valley.model import adapters
from entropy_valley.model.families import find_family

LAST = 10  # optimiser steps at the end of a run that are averaged
REFERENCE = "reference"  # in the place of a method
LOSSES = ("cross_entropy", "loss")  # the masked slots' mean, and as training weighs them
WORSE = "*"  # marks a cross-entropy above that of a uniform guess

# --- The variants, and what is read of them.


def variants(names: Names) -> dict[str, dict[str, Any]]:
    """What each backbone is: label, prompt, training, and the shift of its logits."""
    described = {}
    for name in dict.fromkeys(cell.backbone for cell in names.listed):
        section = names.experiment.backbones[name]
        described[name] = {
            "label": section.label,
            "prompt": "chat" if section.chat else "plain",
            "training": "none" if section.zero_shot else "LoRA-SFT",
            "shifted": shifted(names.experiment, name),
            "natural_shift": find_family(section.family).shifted,
        }
    return described


def files_of_adapters(names: Names) -> Iterator[str]:
    for path in adapter_files(names, names.experiment.results).values():
        yield path
        # Only adapters that were trained here have losses.
        if names.experiment.adapters == "trained":
            yield path.replace(adapters.FACTS, adapters.LOSSES)


# --- The numbers.


def uniform_cross_entropy(vocabulary: int) -> float:
    """log|V|, the mean cross-entropy in nats of giving every token the same probability: exact at every step.

    A loss weighted by 1/t has no such mark: its weights sum to 1 neither at a step nor in expectation. A slot is
    masked with probability t, but one of a sequence's n slots always is, so that a uniform guess loses
    log|V| · (1 + E[(1 - t)^n / (n t)]) in expectation.
    """
    return math.log(vocabulary)


def training_losses(data: Data, path: str) -> dict[str, float]:
    """Of an adapter's losses the last, mean and sample deviation of the last :data:`LAST`, the lowest and its step;
    ``path`` is its :data:`.adapters.FACTS`."""
    vocabulary = data.files.json(path)["vocabulary"]
    uniform = uniform_cross_entropy(vocabulary)
    numbers = {"vocabulary": vocabulary, "uniform_cross_entropy": uniform}
    # Else the last digit of a loss may change in reading.
    losses = data.files.csv(
        path.replace(adapters.FACTS, adapters.LOSSES), float_precision="round_trip", index_col="step"
    )
    for name in LOSSES:
        # By optimiser step; of equal lowest ones the first.
        of_steps, last = losses[name], losses[name].tail(LAST)
        numbers[f"{name}_final"] = of_steps.iloc[-1]
        numbers |= {f"{name}_last_mean": last.mean(), f"{name}_last_std": last.std()}
        numbers |= {f"{name}_minimum": of_steps.min(), f"{name}_minimum_step": of_steps.idxmin()}
    return numbers | {"cross_entropy_over_uniform": numbers["cross_entropy_final"] / uniform}


def describe(texts: pd.Series) -> dict[str, float]:
    """Their number, the share of those that hold nothing but white space, and the mean number of characters (Unicode
    code points), the empty texts included."""
    return {
        "sentences": len(texts),
        "empty_rate": (texts.str.strip() == "").mean(),
        "mean_characters": texts.str.len().mean(),
    }


def instruct_numbers(data: Data) -> pd.DataFrame:
    """The tidy numbers: ``backbone``, ``method``, ``metric``, ``value``, and the fields of the backbone's variant.

    Of the training (method ""; nothing where there are no losses): ``vocabulary``, ``uniform_cross_entropy``, of the
    cross-entropy and of the weighted loss ``cross_entropy_final``, ``loss_final`` and the like, and
    ``cross_entropy_over_uniform``. Of each method those of :func:`describe` and the system scores.
    Of the references (backbone ""): the same without scores.
    Raises :class:`InputError` for a missing file or one that does not fit.
    """
    rows: list[tuple[str, str, str, float]] = []
    if data.experiment.adapters == "trained":
        for run, path in adapter_files(data, data.files.root).items():
            rows += [(run.backbone, "", *number) for number in training_losses(data, path).items()]
    for cell in data.listed:
        outputs = data.of([cell]).sentences
        rows += [(cell.backbone, cell.method, *number) for number in describe(outputs["hypothesis"]).items()]
    # The references are those of any cell: all have the same sentences.
    rows += [("", REFERENCE, *number) for number in describe(outputs["target"]).items()]
    for cell in data.cells.to_dict("records"):
        rows += [(cell["backbone"], cell["method"], metric.name, cell[metric.name]) for metric in data.metrics]
    numbers = pd.DataFrame(rows, columns=["backbone", "method", "metric", "value"])
    described = pd.DataFrame.from_dict(variants(data), orient="index", dtype=object)
    return numbers.join(described, on="backbone")


# --- The table.


@table(
    "An instruction-tuned backbone under this protocol: plain prompt and chat template, fine-tuned and zero-shot, each "
    "read with and without the shift of its logits by one slot. A row that learns and translates only with the shift "
    "shows that the shift was at fault, not the backbone.",
    instruct_cells,
    columns=("hypothesis", "target"),
    files=files_of_adapters,
)
def dream_instruct(data: Data) -> Shown:
    """What each variant of the backbone's use lost in training and put out: sections with and without the shift."""
    numbers = instruct_numbers(data)
    keyed = numbers.set_index("metric")
    values = {key: rows["value"].to_dict() for key, rows in keyed.groupby(["backbone", "method"])}
    columns = aligned("l", "Variant")
    titles = ("Final", "/ log|V|", f"Last {LAST} steps", "Lowest (step)")
    columns += aligned("c", *titles, over="Training cross-entropy")
    for name in formats.RISING:
        columns += aligned("c", "Empty", "Length", data.metric.label, over=data.method(name).short)
    sections: dict[str, list[Row]] = {}
    for name, variant in variants(data).items():
        texts = [variant["label"], *loss_texts(values.get((name, ""), {}))]
        for method in formats.RISING:
            own = values[name, method]
            score = formats.number(own[data.metric.name], data.metric.decimals)
            texts += [f"{own['empty_rate']:.1%}", f"{own['mean_characters']:.2f}", score]
        # Variants with and without the shift alternate in the config.
        sections.setdefault(heading(variant), []).append(Row(texts, heading(variant)))
    rows = [row for section in sections.values() for row in section]
    return Shown(numbers, columns, rows, [*reading(data, values["", REFERENCE], numbers)])


def heading(variant: Mapping[str, Any]) -> str:
    read = "Logits shifted by one slot" if variant["shifted"] else "Logits not shifted"
    return read + (", as the checkpoint was trained" if variant["shifted"] == variant["natural_shift"] else "")


def loss_texts(training: Mapping[str, float]) -> list[str]:
    """The texts below "Training cross-entropy"."""
    if not training:
        return [formats.NONE] * 4
    final, mean, minimum = (training[f"cross_entropy_{key}"] for key in ("final", "last_mean", "minimum"))
    # A model that has learned anything is below log|V|.
    marks = [WORSE * (loss > training["uniform_cross_entropy"]) for loss in (final, mean, minimum)]
    return [
        f"{final:.2f}{marks[0]}",
        f"{training['cross_entropy_over_uniform']:.2f}",
        formats.mean_std(mean, training["cross_entropy_last_std"], 2) + marks[1],
        f"{minimum:.2f}{marks[2]} ({training['cross_entropy_minimum_step']:,.0f})",
    ]


def reading(names: Names, reference: Mapping[str, float], numbers: pd.DataFrame) -> Iterator[str]:
    """The setting, and how to read the columns."""
    cell = names.listed[0]
    place, sentences = names.place(cell.direction, cell.testset), f"{reference['sentences']:,.0f} sentences"
    order = f"reveal order {names.order(cell.order)}, T = {cell.steps}"
    yield f"{place}, {sentences}; {order}; training seed {cell.seed}."
    # Adapters of others have no losses, and so no vocabulary here.
    sizes = numbers.loc[numbers["metric"] == "vocabulary", "value"]
    if len(sizes):
        uniform = ", ".join(f"{uniform_cross_entropy(size):.2f} (|V| = {size:,.0f})" for size in sizes.unique())
        yield f"Cross-entropy: mean over a step's masked slots, in nats. That of a uniform guess is log|V| = {uniform}."
        yield f"{WORSE}: worse than a uniform guess. Last {LAST} steps: mean ± sample standard deviation."
        yield "The CSV has the weighted training loss, too; there a uniform guess does not lose log|V|."
    yield (
        "Empty: share of outputs without text. Length: mean characters of an output, empty ones included; "
        f"the references have {reference['mean_characters']:.2f}."
    )
    yield footnotes.ORACLE
    if len(sizes) < len(variants(names)):
        yield f"{formats.NONE}: no losses here: not trained, or a given adapter."

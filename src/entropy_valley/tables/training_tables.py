"""The tables of trainings: their settings, their prompts, and their pairs of sentences."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.config import matrix
from entropy_valley.config.params import prompt, tokenizers
from entropy_valley.config.paths import adapter_folder
from entropy_valley.data.sampling import REASONS
from entropy_valley.errors import InputError
from entropy_valley.lengths.statistics import PERCENTILES
from entropy_valley.model import adapters
from entropy_valley.results import record_of
from entropy_valley.stats.paper_numbers import means
from entropy_valley.tables import formats
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.pivot import by_key
from entropy_valley.tables.reader import Results
from entropy_valley.tables.render import Column, Group, Table, TableRow, TableSection
from entropy_valley.training.settings import Lora, Loss, Training

# --- What the adapters were trained with, and by which prompts.

FIELDS = ["backbone", "direction", "seed", "key", "value"]
# How the training ran and what it had, beside the settings that its adapter depends on.
RAN = ("processes", "micro_tokens", "float32_products", "steps", "pairs", "trainable_parameters")
# What our training has no setting for, as `training.deepspeed` builds it.
FIXED = {
    "optimiser": "AdamW",
    "scheduler": "linear warm-up, half cosine",
    "accumulation": "until the batch is done",
}
ROWS = {
    "optimiser": "Optimiser",
    "betas_1": "AdamW beta 1",
    "betas_2": "AdamW beta 2",
    "weight_decay": "Weight decay",
    "learning_rate": "Peak learning rate",
    "scheduler": "Scheduler",
    "warmup": "Warm-up, share of the steps",
    "epochs": "Epochs",
    "max_steps": "Optimiser steps, configured",
    "global_batch": "Global batch, sequences",
    "accumulation": "Gradient accumulation",
    "micro_tokens": "Micro-batch of a device, at most",
    "processes": "Processes (GPUs)",
    "device": "Hardware of a process",
    "precision": "Precision",
    "float32_products": "Products of float32 matrices",
    "max_tokens": "Longest pair, tokens",
    "lora_rank": "LoRA rank",
    "lora_alpha": "LoRA alpha",
    "lora_dropout": "LoRA dropout",
    "selection": "Model selection",
    "clip": "Gradient clipping, norm",
    "steps": "Optimiser steps, done",
    "pairs": "Training pairs",
    "trainable_parameters": "Trainable parameters",
    "loss_weight": "Loss: weight of a slot",
    "loss_normaliser": "Loss: divided by",
    "loss_time": "Loss: masking rate for each",
    "loss_eps": "Loss: smallest masking rate",
    "loss_eos_padding": "Loss: further EOS targets",
}
"""The printed names of settings, in the table's order; others go by their own, behind these."""
DEFAULTS = {
    prefix + name: field.default
    for prefix, section in (("", Training), ("loss_", Loss), ("lora_", Lora))
    for name, field in section.model_fields.items()
}
UNITS = {"micro_tokens": "tokens"}
PAPER = {  # the rows of its table that are no numbers, and those whose unit is another than ours
    "optimiser": "AdamW",
    "scheduler": "cosine decay",
    "accumulation": "4 steps",
    "micro_tokens": "4 sequences",
    "device": "H20, 96 GB",
    "precision": "bf16",
    "selection": "final checkpoint",
}
HYPERPARAMS = (
    "From the files beside the adapters; several values are in the order of the runs. –: no such setting.",
    "Paper: its table of hyperparameters, of the LLaDA and the LLaMA-3 runs.",
)
PROMPTS = (r"{src}: the source; \n: a line break. The translation begins where the prompt ends.",)


class OfRuns(TableReport):
    """A table of the runs that the main tables and the autoregressive ones are of."""

    scored = False

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        return [*matrix.table_cells(self.experiment), *matrix.autoregressive_cells(self.experiment)]

    @property
    def runs(self) -> list[matrix.Run]:
        return list(dict.fromkeys(cell.run for cell in self.cells))


class HyperparamsTable(OfRuns):
    """A row for each setting, a column for each backbone, and the paper's."""

    caption = "What the adapters were trained with, as the files beside them say, and the paper's hyperparameters."

    def inputs(self) -> list[str]:
        return list(dict.fromkeys(self.adapter_files.values()))

    @property
    def adapter_files(self) -> dict[matrix.Run, str]:
        """The file beside the adapter that each run decodes with: a variant's may be that of another backbone."""
        folders = {run: adapter_folder(self.experiment, run) for run in self.runs}
        return {run: f"{folder}/{adapters.FACTS}" for run, folder in folders.items() if folder}

    def numbers(self, results: Results) -> pd.DataFrame:
        """One row for each run and setting. The record beside ``adapter.json`` names the hardware of the training.

        A key within a block, or a place in a list, is behind its name: ``lora_rank``, ``betas_1``. A setting without a
        printed name is left out at its default. Of an adapter that was not trained here, only the keys that its file
        has.
        """
        rows = []
        for run, declared in self.adapter_files.items():
            path = results.at(declared.removeprefix(f"{self.experiment.results}/"))
            facts = files.read_json(path)
            spec = facts.get("spec", {})
            settings = {**spec.get("training", {}), **{key: spec[key] for key in ("precision",) if key in spec}}
            settings |= {key: facts[key] for key in RAN if key in facts}
            if "training" in spec:
                settings |= FIXED | _selection(settings)
                record = record_of(path)
                settings |= {key: value for key, value in (record.facts if record else {}).items() if key == "device"}
            told = {key: value for key, value in _flat("", settings) if key in ROWS or value != DEFAULTS.get(key)}
            of_run = {key: getattr(run, key) for key in FIELDS[:3]}
            rows += [{**of_run, "key": key, "value": value} for key, value in told.items()]
        return pd.DataFrame(rows, columns=FIELDS)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        values: dict[tuple[str, str], dict[str, None]] = {}
        for row in numbers.itertuples(index=False):
            text = f"{_printed(row.value)} {UNITS.get(row.key, '')}".strip()
            values.setdefault((row.key, row.backbone), {})[text] = None
        order, backbones = list(ROWS), dict.fromkeys(run.backbone for run in self.runs)
        keys = sorted(numbers["key"].unique(), key=lambda key: order.index(key) if key in ROWS else len(order))
        paper = {number.metric: number.text for number in means() if number.label == "tab:hyperparams"} | PAPER
        groups = []
        for key in keys:
            texts = [*("; ".join(values.get((key, name), {})) for name in backbones), paper.get(key, "")]
            groups.append(Group.of(ROWS.get(key, key.replace("_", " ")), [text or formats.NONE for text in texts]))
        titles = (*map(self.backbone, backbones), "Paper")
        columns = (Column("Hyperparameter", align="l"), *(Column(title, align="r") for title in titles))
        return Table(columns, [TableSection(groups)], HYPERPARAMS)


class PromptsTable(OfRuns):
    """A row for each direction and prompt, with the backbones that get it."""

    caption = "The prompts of each direction, in training and in decoding."

    def numbers(self, results: Results) -> pd.DataFrame:
        prompts = []
        for direction, backbone in dict.fromkeys((run.direction, run.backbone) for run in self.runs):
            decoded_as = self.experiment.backbones[backbone].decoding_prompt_of or direction
            text = prompt(self.experiment, backbone, direction)
            prompts.append({"backbone": backbone, "decoded_as": decoded_as, "direction": direction, "prompt": text})
        return pd.DataFrame(prompts)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        groups = []
        for direction, rows in numbers.groupby("direction", sort=False):
            shared: dict[tuple[str, str], list[str]] = {}
            for row in rows.itertuples(index=False):
                shared.setdefault((row.prompt, row.decoded_as), []).append(self.backbone(row.backbone))
            lines = []
            for (text, decoded_as), names in shared.items():
                same = decoded_as == direction
                decoding = "the same" if same else f"that of {formats.direction(decoded_as)}"
                texts = ("all" if len(shared) == 1 else ", ".join(names), text.replace("\n", r"\n"), decoding)
                lines.append(TableRow.of(texts))
            groups.append(Group(formats.direction(str(direction)), lines))
        titles = ("Direction", "Backbones", "Prompt in training", "Prompt in decoding")
        return Table([Column(title, align="l") for title in titles], [TableSection(groups)], PROMPTS)


def _printed(value: Any) -> str:
    """A setting; a large count with commas."""
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


def _selection(settings: Mapping[str, Any]) -> dict[str, str]:
    """Which step's adapter is kept; never one that a score has chosen."""
    every = settings.get("keep_every", 1)
    return {"selection": "last step" if every == 1 else f"last step that is a multiple of {every}"}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values of nested mappings and lists, by joined names; nothing for null."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}_{key}" if name else key, inner)
    elif isinstance(value, list):
        yield from _flat(name, {str(place): inner for place, inner in enumerate(value, 1)})
    elif value is not None:
        yield name, value


# --- Training pairs: where they come from, which were dropped, and how long translations are.

SIDES = ("source", "target")
RATIOS = ("median", "mean", "pairs", *(f"p{percent}" for percent in PERCENTILES))
Values = Mapping[tuple[str, str], Mapping[str, float]]  # by direction and backbone
WORDS = {"blank": "blank", "short": "too short", "long": "too long"}
COUNTED = (
    ("read", "Pairs read"),
    ("dropped", "Dropped"),
    *((f"dropped_{side}_{why}", f"– {side} {WORDS[why]}") for side in SIDES for why in REASONS),
    ("kept", "Kept"),
    ("train", "Training pairs"),
    ("dev", "Development pairs"),
)
RATIO = "|y|/|x| in tokens of the training pairs: median (mean)"
SPREAD = f"|y|/|x|: percentiles {', '.join(map(str, PERCENTILES))}"
CENTRE, RANGE = ("median", "mean"), [f"p{percent}" for percent in PERCENTILES]
ORDER = (
    "A dropped pair counts once: for the language that is first in the alphabet; blank before too short before too "
    "long."
)


class CorpusTable(TableReport):
    """A column for each direction whose pairs train a backbone; a row for each number."""

    caption = (
        "Training pairs of each direction: pairs of the source, those that the length filters dropped and why, pairs "
        "drawn; and how long translations are for their sources in tokens of each backbone: median, mean, percentiles."
    )
    recorded = ("directions",)
    scored = False

    @property
    def wanted(self) -> bool:
        """Given adapters were trained on pairs that are not drawn here."""
        return self.experiment.adapters == "trained"

    @functools.cached_property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(cell.direction for cell in matrix.all_cells(self.experiment)))

    def inputs(self) -> list[str]:
        folders = [f"{self.experiment.results}/corpus/{name}" for name in self.directions]
        return [path for folder in folders for path in (f"{folder}/corpus.json", f"{folder}/length_ratios.json")]

    def corpus(self, results: Results, direction: str) -> dict[str, Any]:
        """What a direction's corpus says of its pairs: ``counts``, ``filters`` and ``digest``."""
        return results.json("corpus", direction, "corpus.json")

    def numbers(self, results: Results) -> pd.DataFrame:
        """The tidy numbers: ``direction``, ``backbone``, ``metric``, ``value``.

        Of a direction (backbone ""): ``read``, ``dropped`` and its parts ``dropped_source_short`` and the like,
        ``kept``, ``train``, ``dev``. Of each tokenizer: ``length_ratio_median``, ``length_ratio_mean``,
        ``length_ratio_pairs``, and ``length_ratio_p10`` and the like, of |y|/|x| of the training pairs in tokens.
        """
        rows = []
        for name in self.directions:
            counts = self.corpus(results, name)["counts"]
            read, dropped = counts["read"], counts["filtered"]
            numbers = {"read": read, "dropped": dropped, **_reasons(results, name), "kept": read - dropped}
            numbers |= {"train": counts["train"], "dev": counts["dev"]}
            rows += [(name, "", metric, value) for metric, value in numbers.items()]
            for backbone, ratios in results.json("corpus", name, "length_ratios.json").items():
                rows += [(name, backbone, f"length_ratio_{metric}", ratios[metric]) for metric in RATIOS]
        return pd.DataFrame(rows, columns=["direction", "backbone", "metric", "value"])

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        values = by_key(numbers, "direction", "backbone")
        columns = (Column("", align="l"), *(Column(formats.direction(name), align="r") for name in self.directions))
        sources = Group.of("Source", (self.experiment.directions[name].train for name in self.directions))
        counts = (
            Group.of(label, (_count(values[name, ""][key]) for name in self.directions)) for key, label in COUNTED
        )
        ratios = self._ratios(values, CENTRE, "{:.2f} ({:.2f})")
        spread = self._ratios(values, RANGE, " ".join(["{:.2f}"] * len(RANGE)))
        sections = (
            TableSection((sources, *counts), "Pairs"),
            TableSection(ratios, RATIO),
            TableSection(spread, SPREAD),
        )
        corpora = {name: self.corpus(results, name) for name in self.directions}
        filters = (item for corpus in corpora.values() for item in corpus["filters"].items())
        limits = ", ".join(dict.fromkeys(text for item in filters for text in _limits(*item)))
        digests = [
            (
                f"Digest of the training pairs of {formats.direction(name)}, N = {_count(values[name, '']['train'])}:",
                corpus["digest"]["train"],
            )
            for name, corpus in corpora.items()
        ]
        return Table(
            columns, sections, [f"Length filters, both ends included: {limits}."] * bool(limits) + [ORDER], digests
        )

    def _ratios(self, values: Values, metrics: Sequence[str], text: str) -> list[Group]:
        """The numbers ``metrics`` of the length ratios under each tokenizer, printed as ``text``."""

        def row(backbone: str) -> Iterator[str]:
            for direction in self.directions:
                ratios = values.get((direction, backbone))
                numbers = [ratios[f"length_ratio_{metric}"] for metric in metrics] if ratios else []
                yield text.format(*numbers) if numbers else formats.NONE

        backbones = dict.fromkeys(name for one in self.directions for name in tokenizers(self.experiment, one))
        return [Group.of(self.backbone(name), row(name)) for name in backbones]


def _reasons(results: Results, direction: str) -> dict[str, int]:
    """How many pairs were dropped for each reason, from the record of their job."""
    path = results.at("corpus", direction, "corpus.json")
    record = record_of(path)
    if record is None:
        raise InputError(path, "its record is missing", "Make the corpus again.")
    languages = dict(zip(SIDES, direction.split("-"), strict=True))
    return {
        f"dropped_{side}_{why}": record.facts["dropped"].get(language, {}).get(why, 0)
        for side, language in languages.items()
        for why in REASONS
    }


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _limits(language: str, units: Mapping[str, Sequence[int]]) -> list[str]:
    """The length limits of a language in words."""
    limits = [f"{low:,}–{high:,} {unit}" for unit, (low, high) in units.items()]
    return [f"{language.capitalize()} {limit}" for limit in limits or ["none"]]

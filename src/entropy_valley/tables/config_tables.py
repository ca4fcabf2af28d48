"""What the config's runs were trained with, and by which prompts: tables of settings, not of scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from entropy_valley import files, results, revisions
from entropy_valley.config import Experiment, matrix
from entropy_valley.config.params import prompt
from entropy_valley.config.paths import adapter_folder
from entropy_valley.model import adapters
from entropy_valley.stats.cells import Params
from entropy_valley.stats.paper_numbers import means
from entropy_valley.tables import formats, labels
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection
from entropy_valley.training.settings import Lora, Loss, Training

FIELDS = ["backbone", "direction", "seed", "key", "value"]
# How the training ran and what it had, beside the settings that its adapter depends on.
RAN = ("processes", "micro_tokens", "float32_products", "steps", "pairs", "trainable_parameters")
# What our training has no setting for, as `training.deepspeed` builds it.
FIXED = {
    "optimizer": "AdamW",
    "scheduler": "linear warm-up, half cosine",
    "accumulation": "until the batch is done",
}
ROWS = {
    "optimizer": "Optimizer",
    "betas_1": "AdamW beta 1",
    "betas_2": "AdamW beta 2",
    "weight_decay": "Weight decay",
    "learning_rate": "Peak learning rate",
    "scheduler": "Scheduler",
    "warmup": "Warm-up, share of the steps",
    "epochs": "Epochs",
    "max_steps": "Step budget",
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
    "clip": "Largest gradient norm",
    "steps": "Optimiser steps",
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
    "optimizer": "AdamW",
    "scheduler": "cosine decay",
    "accumulation": "4 steps",
    "micro_tokens": "4 sequences",
    "device": "H20, 96 GB",
    "precision": "bf16",
    "selection": "final checkpoint",
}
HYPERPARAMS = (
    Note("Of the files beside the adapters; values of several runs in the order of the config. –: it has none."),
    Note("Paper: its table of hyperparameters, of the LLaDA and the LLaMA-3 runs."),
)
PROMPTS = (Note(r"{src}: the source; \n: a line break. The translation begins where the prompt ends."),)


class ConfigTable(TableReport):
    """A table of the runs that the main tables and the autoregressive ones are of; it has no provenance of scores."""

    scored = False

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return [*matrix.table_cells(experiment), *matrix.autoregressive_cells(experiment)]

    def runs(self, experiment: Experiment) -> list[matrix.Run]:
        return list(dict.fromkeys(cell.run for cell in self.cells(experiment)))

    def params(self, experiment: Experiment) -> dict[str, Any]:
        names = dict.fromkeys(run.backbone for run in self.runs(experiment))
        printed = [(name, experiment.backbones[name].label) for name in names]
        return {"revision": revisions.REPORTING, "backbones": printed, **self.facts(experiment)}

    def facts(self, experiment: Experiment) -> dict[str, Any]:
        """What the table is of, as params."""
        raise NotImplementedError

    def made(self, params: Params) -> tuple[Table, pd.DataFrame]:  # type: ignore[override]
        numbers = self.numbers(params)
        return self.table(params, numbers), numbers


class HyperparamsTable(ConfigTable):
    """A row for each setting, a column for each backbone, and the paper's."""

    caption = "What the adapters were trained with, as the files beside them say, and the paper's hyperparameters."

    def inputs(self, experiment: Experiment) -> list[str]:
        return list(dict.fromkeys(adapter["path"] for adapter in self.facts(experiment)["adapters"]))

    def facts(self, experiment: Experiment) -> dict[str, Any]:
        """Of each run, the adapter that it decodes with: a variant's may be that of another backbone."""
        folders = ((run, adapter_folder(experiment, run)) for run in self.runs(experiment))
        return {"adapters": [{"path": f"{path}/{adapters.FACTS}"} | asdict(run) for run, path in folders if path]}

    def numbers(self, params: Params) -> pd.DataFrame:
        return trainings(params["adapters"])

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        values: dict[tuple[str, str], dict[str, None]] = {}
        for row in numbers.itertuples(index=False):
            values.setdefault((row.key, row.backbone), {})[f"{row.value} {UNITS.get(row.key, '')}".strip()] = None
        order = list(ROWS)
        keys = sorted(numbers["key"].unique(), key=lambda key: order.index(key) if key in ROWS else len(order))
        paper = {number.metric: number.text for number in means() if number.label == "tab:hyperparams"} | PAPER
        groups = []
        for key in keys:
            texts = ["; ".join(values.get((key, name), {})) for name, _ in params["backbones"]]
            row = TableRow(tuple(TableCell(text or formats.NONE) for text in (*texts, paper.get(key, ""))))
            groups.append(Group(ROWS.get(key, key.replace("_", " ")), (row,)))
        titles = (*(label for _, label in params["backbones"]), "Paper")
        columns = (Column("Hyperparameter", align="l"), *(Column(title, align="r") for title in titles))
        return Table(columns, (TableSection(tuple(groups)),), HYPERPARAMS)


class PromptsTable(ConfigTable):
    """A row for each direction and prompt, with the backbones that get it."""

    caption = "The prompts of each direction, in training and in decoding."

    def facts(self, experiment: Experiment) -> dict[str, Any]:
        runs = dict.fromkeys((run.direction, run.backbone) for run in self.runs(experiment))
        prompts = []
        for direction, backbone in runs:
            decoded_as = experiment.backbones[backbone].decoding_prompt_of or direction
            text = prompt(experiment, backbone, direction)
            prompts.append({"direction": direction, "backbone": backbone, "prompt": text, "decoded_as": decoded_as})
        return {"prompts": prompts}

    def numbers(self, params: Params) -> pd.DataFrame:
        return pd.DataFrame(params["prompts"])

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        groups, names = [], dict(params["backbones"])
        for direction, rows in numbers.groupby("direction", sort=False):
            shared: dict[tuple[str, str], list[str]] = {}
            for row in rows.itertuples(index=False):
                shared.setdefault((row.prompt, row.decoded_as), []).append(names[row.backbone])
            lines = (
                TableRow(
                    (
                        TableCell("all" if len(shared) == 1 else ", ".join(listed)),
                        *_texts(text, decoded_as, str(direction)),
                    )
                )
                for (text, decoded_as), listed in shared.items()
            )
            groups.append(Group(labels.direction(str(direction)), tuple(lines)))
        titles = ("Direction", "Backbones", "Prompt in training", "Prompt in decoding")
        return Table(tuple(Column(title, align="l") for title in titles), (TableSection(tuple(groups)),), PROMPTS)


# --- The numbers.


def trainings(adapters: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each run and setting; ``adapters`` are runs with the ``path`` of their ``adapter.json``, whose
    record names the hardware of their training.

    A key within a block, or a place in a list, is behind its name: ``lora_rank``, ``betas_1``. A setting without a
    printed name is left out at its default. Of an adapter that was not trained here, only the keys that its file has.
    """
    rows = []
    for adapter in adapters:
        facts, run = files.read_json(adapter["path"]), {key: adapter[key] for key in FIELDS[:3]}
        spec = facts.get("spec", {})
        settings = {**spec.get("training", {}), **{key: spec[key] for key in ("precision",) if key in spec}}
        settings |= {key: facts[key] for key in RAN if key in facts}
        if "training" in spec:
            settings |= FIXED | _selection(settings)
            record = results.record_of(adapter["path"])
            settings |= {key: value for key, value in (record.facts if record else {}).items() if key == "device"}
        told = {key: value for key, value in _flat("", settings) if key in ROWS or value != DEFAULTS.get(key)}
        rows += [{**run, "key": key, "value": value} for key, value in told.items()]
    return pd.DataFrame(rows, columns=FIELDS)


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


# --- The layout.


def _texts(prompt: str, decoded_as: str, direction: str) -> list[TableCell]:
    other = "the same" if decoded_as == direction else f"that of {labels.direction(decoded_as)}"
    return [TableCell(prompt.replace("\n", r"\n")), TableCell(other)]

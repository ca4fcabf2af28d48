"""The tables of trainings: their settings, their prompts, and their pairs of sentences."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.data.sampling import REASONS
from entropy_valley.experiment.config import Experiment, matrix
from entropy_valley.experiment.config.params import prompt, tokenizers
from entropy_valley.experiment.config.paths import adapter_folder
from entropy_valley.experiment.stats.paper_numbers import means
from entropy_valley.experiment.tables import formats
from entropy_valley.experiment.tables.report import Data, Names, Row, Shown, aligned, table
from entropy_valley.lengths.statistics import PERCENTILES
from entropy_valley.model import adapters
from entropy_valley.results import moved, record_of, record_path
from entropy_valley.training.settings import Lora, Loss, Training

# --- What the adapters were trained with, and by which prompts.

FIELDS = ["backbone", "direction", "seed", "key", "value"]
# How the training ran and what it had, beside the settings that its adapter depends on.
RAN = ("precision", "processes", "micro_tokens", "float32_products", "steps", "pairs", "trainable_parameters")
# What our training has no setting for, as `training.deepspeed` builds it.
FIXED = {
    "optimiser": "AdamW",
    "scheduler": "linear warm-up, half cosine",
    "accumulation": "until the batch is done",
}
# By key, in the order of the table: the printed name, and what the paper has where that is no number of its own unit.
# Other settings go by their keys, behind these.
ROWS = pd.read_csv(Path(__file__).with_name("hyperparams.csv"), index_col="key", keep_default_na=False)
DEFAULTS = {
    prefix + name: field.default
    for prefix, section in (("", Training), ("loss_", Loss), ("lora_", Lora))
    for name, field in section.model_fields.items()
}
HYPERPARAMS = (
    "From the files beside the adapters; several values are in the order of the runs. –: no such setting.",
    "Paper: its table of hyperparameters, of the LLaDA and the LLaMA-3 runs.",
)
PROMPTS = (r"{src}: the source; \n: a line break. The translation begins where the prompt ends.",)


def run_cells(experiment: Experiment) -> list[matrix.Cell]:
    """The cells of the runs that the main tables and the autoregressive ones are of."""
    return [*matrix.table_cells(experiment), *matrix.autoregressive_cells(experiment)]


def runs_of(names: Names) -> list[matrix.Run]:
    return list(dict.fromkeys(cell.run for cell in names.listed))


def adapter_files(names: Names, root: str) -> dict[matrix.Run, str]:
    """The file beside the adapter that each run decodes with: a variant's may be that of another backbone."""
    experiment, paths = names.experiment, {}
    for run in runs_of(names):
        if folder := adapter_folder(experiment, run):
            paths[run] = moved(f"{folder}/{adapters.FACTS}", experiment.results, root)
    return paths


@table(
    "What the adapters were trained with, as the files beside them say, and the paper's hyperparameters.",
    run_cells,
    files=lambda names: adapter_files(names, names.experiment.results).values(),
    scored=False,
)
def hyperparams(data: Data) -> Shown:
    """A row for each setting, a column for each backbone, and the paper's."""
    numbers = settings_of_runs(data)
    values: dict[tuple[str, str], dict[str, None]] = {}
    for row in numbers.itertuples():
        text = f"{row.value:,}" if isinstance(row.value, int) and row.value >= 10_000 else str(row.value)
        # Runs that share a value print it once.
        values.setdefault((row.key, row.backbone), {})[text + " tokens" * (row.key == "micro_tokens")] = None
    backbones = dict.fromkeys(run.backbone for run in runs_of(data))
    paper = {number.metric: number.text for number in means() if number.label == "tab:hyperparams"}
    present = numbers["key"].unique()
    rows = []
    for key in dict.fromkeys([*ROWS.index, *present]):
        if key in present:
            label = ROWS["label"].get(key, key.replace("_", " "))
            texts = ["; ".join(values.get((key, name), {})) for name in backbones]
            texts.append(ROWS["paper"].get(key) or paper.get(key, ""))
            rows.append(Row([label, *(text or formats.NONE for text in texts)]))
    columns = aligned("l", "Hyperparameter") + aligned("r", *map(data.backbone, backbones), "Paper")
    return Shown(numbers, columns, rows, HYPERPARAMS)


def settings_of_runs(data: Data) -> pd.DataFrame:
    """One row for each run and setting. The record beside ``adapter.json`` names the hardware of the training.

    A key within a block, or a place in a list, is behind its name: ``lora_rank``, ``betas_1``. A setting without a
    printed name is left out at its default. Of an adapter that was not trained here, only the keys that its file has.
    """
    rows = []
    for run, path in adapter_files(data, data.files.root).items():
        facts = data.files.json(path)
        spec = facts.get("spec", {})
        described = facts | spec
        settings = spec.get("training", {}) | {key: described[key] for key in RAN if key in described}
        # An adapter of others may come without a description.
        if "training" in spec:
            every = settings.get("keep_every", 1)
            # Never one that a score has chosen.
            kept = "last step" if every == 1 else f"last step that is a multiple of {every}"
            settings |= FIXED | {"selection": kept}
            record = record_of(path)
            settings["device"] = record.facts.get("device") if record else None
        for key, value in _flat("", settings):
            # Dozens of settings that nobody has changed would hide the others.
            if key in ROWS.index or value != DEFAULTS.get(key):
                rows.append((run.backbone, run.direction, run.seed, key, value))
    return pd.DataFrame(rows, columns=FIELDS)


@table("The prompts of each direction, in training and in decoding.", run_cells, scored=False)
def prompts(data: Data) -> Shown:
    """A row for each direction and prompt, with the backbones that get it."""
    experiment, listed = data.experiment, []
    # Seeds share their prompts.
    for direction, backbone in dict.fromkeys((run.direction, run.backbone) for run in runs_of(data)):
        decoded_as = experiment.backbones[backbone].decoding_prompt_of or direction
        text = prompt(experiment, backbone, direction)
        listed.append({"backbone": backbone, "decoded_as": decoded_as, "direction": direction, "prompt": text})
    numbers, rows = pd.DataFrame(listed), []
    for direction, of_direction in numbers.groupby("direction", sort=False):
        # Backbones with the same prompt share a row.
        groups = of_direction.groupby(["prompt", "decoded_as"], sort=False)
        for (text, decoded_as), of_prompt in groups:
            backbones = "all" if len(groups) == 1 else ", ".join(map(data.backbone, of_prompt["backbone"]))
            decoding = "the same" if decoded_as == direction else f"that of {formats.direction(decoded_as)}"
            rows.append(Row([formats.direction(str(direction)), backbones, text.replace("\n", r"\n"), decoding]))
    columns = aligned("l", "Direction", "Backbones", "Prompt in training", "Prompt in decoding")
    return Shown(numbers, columns, rows, PROMPTS, labels=2)


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
CENTRE, RANGE = ("median", "mean"), [f"p{percent}" for percent in PERCENTILES]
RATIOS = (*CENTRE, "pairs", *RANGE)
COUNTED = pd.read_csv(Path(__file__).with_name("corpus.csv"), index_col="key")["label"]
RATIO = "|y|/|x| in tokens of the training pairs: median (mean)"
SPREAD = f"|y|/|x|: percentiles {', '.join(map(str, PERCENTILES))}"
ORDER = (
    "A dropped pair counts once: for the language that is first in the alphabet; blank before too short before too "
    "long."
)


def corpus_files(names: Names) -> Iterator[str]:
    for name in matrix.directions(names.experiment):
        yield f"{names.experiment.results}/corpus/{name}/corpus.json"
        yield f"{names.experiment.results}/corpus/{name}/length_ratios.json"


def corpus_numbers(data: Data) -> pd.DataFrame:
    """The tidy numbers: ``direction``, ``backbone``, ``metric``, ``value``.

    Of a direction (backbone ""): ``read``, ``dropped`` and its parts ``dropped_source_short`` and the like, ``kept``,
    ``train``, ``dev``. Of each tokenizer: ``length_ratio_median``, ``length_ratio_mean``, ``length_ratio_pairs``, and
    ``length_ratio_p10`` and the like, of |y|/|x| of the training pairs in tokens.
    """
    rows = []
    for name in matrix.directions(data.experiment):
        folder = f"{data.files.root}/corpus/{name}"
        counts = data.files.json(f"{folder}/corpus.json")["counts"]
        read, dropped = counts["read"], counts["filtered"]
        numbers = {"read": read, "dropped": dropped}
        # The reasons are in the record of the job alone.
        reasons = files.read_json(record_path(f"{folder}/train.jsonl"))["facts"]["dropped"]
        for side, language in zip(SIDES, name.split("-"), strict=True):
            for reason in REASONS:
                numbers[f"dropped_{side}_{reason}"] = reasons.get(language, {}).get(reason, 0)
        numbers["kept"] = read - dropped
        numbers |= {"train": counts["train"], "dev": counts["dev"]}
        rows += [(name, "", metric, value) for metric, value in numbers.items()]
        for backbone, ratios in data.files.json(f"{folder}/length_ratios.json").items():
            rows += [(name, backbone, f"length_ratio_{metric}", ratios[metric]) for metric in RATIOS]
    return pd.DataFrame(rows, columns=["direction", "backbone", "metric", "value"])


@table(
    "Training pairs of each direction: pairs of the source, those that the length filters dropped and why, pairs "
    "drawn; and how long translations are for their sources in tokens of each backbone: median, mean, percentiles.",
    lambda experiment: [],
    files=corpus_files,
    scored=False,
    wanted=lambda names: names.experiment.adapters == "trained",  # given adapters had pairs that are not drawn here
)
def corpus(data: Data) -> Shown:
    """A column for each direction whose pairs train a backbone; a row for each number."""
    experiment, directions = data.experiment, matrix.directions(data.experiment)
    numbers = corpus_numbers(data)
    values = numbers.set_index(["direction", "backbone", "metric"])["value"].to_dict()
    columns = aligned("l", "") + aligned("r", *map(formats.direction, directions))
    # Directions of one config may draw from several sources.
    rows = [Row(["Source", *(experiment.directions[name].train for name in directions)], "Pairs")]
    for key, label in COUNTED.items():
        rows.append(Row([label, *(f"{values[name, '', key]:,.0f}" for name in directions)], "Pairs"))
    # Lengths in tokens depend on the tokenizer, so each has a row.
    backbones = dict.fromkeys(backbone for name in directions for backbone in tokenizers(experiment, name))
    spread = " ".join(["{:.2f}"] * len(RANGE))
    for section, metrics, text in ((RATIO, CENTRE, "{:.2f} ({:.2f})"), (SPREAD, RANGE, spread)):
        for backbone in backbones:
            texts = []
            for name in directions:
                ratios = [values.get((name, backbone, f"length_ratio_{metric}")) for metric in metrics]
                # A backbone may not be trained in each direction.
                texts.append(formats.NONE if None in ratios else text.format(*ratios))
            rows.append(Row([data.backbone(backbone), *texts], section))
    limits: dict[str, None] = {}
    digests = []
    for name in directions:
        facts = data.files.json(f"{data.files.root}/corpus/{name}/corpus.json")
        for language, units in facts["filters"].items():
            texts = [f"{low:,}–{high:,} {unit}" for unit, (low, high) in units.items()] or ["none"]
            # Two directions share a language, and its limits.
            limits |= dict.fromkeys(f"{language.capitalize()} {text}" for text in texts)
        pairs = f"{formats.direction(name)}, N = {values[name, '', 'train']:,.0f}"
        digests.append((f"Digest of the training pairs of {pairs}:", facts["digest"]["train"]))
    notes = [f"Length filters, both ends included: {', '.join(limits)}."] * bool(limits) + [ORDER]
    return Shown(numbers, columns, rows, notes, signatures=digests)

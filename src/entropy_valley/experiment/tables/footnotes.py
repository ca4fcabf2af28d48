"""What stands below a table: how to read it, and what its numbers were made by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.decoding.canvas import PART, footnote
from entropy_valley.errors import InputError
from entropy_valley.experiment.config.matrix import DEV, Cell
from entropy_valley.experiment.config.methods import declares
from entropy_valley.experiment.frames import CELL, PLACE, RUN
from entropy_valley.experiment.stats import summary
from entropy_valley.experiment.tables import formats
from entropy_valley.experiment.tables.names import Names
from entropy_valley.experiment.tables.reader import Data, versions
from entropy_valley.results import SHORT
from entropy_valley.texts import counted

# --- How to read it.

SLOT = (
    "Closure over Ratio + EOS: the same over the fixed ratio with one slot more for the EOS, as EV and Oracle have it; "
    "none (–) of Ratio, which lacks it."
)
ORACLE = "Oracle takes the reference's length. It is not an upper bound: another length can score higher."
NO_BOUND = "The reference's length is not an upper bound: another length can score higher."  # where no row is Oracle's
FEW = 50  # sentences


def setting(names: Names, *more: str) -> str:
    """Whose numbers these are: backbones, reveal order and step budget of its cells; and ``more``."""
    cells = [cell for cell in names.cells if not cell.autoregressive]
    backbones = ", ".join(map(names.backbone, dict.fromkeys(cell.backbone for cell in cells)))
    order = f"reveal order {names.order(cells[0].order)}, T = {cells[0].steps}"
    return f"{'; '.join([backbones, order, *more])}."


def spread(numbers: pd.DataFrame) -> str:
    """What mean and deviation are, with the number of runs; a single run has its value alone."""
    fewest, most = numbers["runs"].min(), numbers["runs"].max()
    if most == 1:
        return "One run (training seed)."
    if fewest == most:
        return f"Mean ± sample standard deviation over {most} runs (training seeds)."
    text = f"Mean ± sample standard deviation over {fewest} to {most} runs (training seeds)."
    return f"{text} A score without ± is of one run." if fewest == 1 else text


def reading(names: Names, data: Data, numbers: pd.DataFrame) -> list[str]:
    """What mean, deviation, closures and bold are, with the number of runs, and where closures say little."""
    return [
        f"{spread(numbers)} Bold: the best method that sees no reference.",
        "Gap closure: (method − Ratio) / (Oracle − Ratio) in each run, n/a if that lead may be chance; mean ± std.",
        *([SLOT] if "ratio_eos" in set(numbers["method"]) else []),
        ORACLE,
        *(f"{metric.label}: lower is better." for metric in names.shown_metrics if not metric.higher_is_better),
        *doubtful_gaps(names, data),
    ]


def doubtful_gaps(names: Names, data: Data, baselines: Iterable[str] = summary.BASELINES) -> Iterator[str]:
    """Where Oracle's lead over a fixed ratio may be chance, so that there is no gap to close."""
    gaps = summary.doubtful_gaps(data.sentences, names.metric.name)
    for baseline in baselines:
        if baseline not in gaps:
            continue
        places = []
        for (backbone, *place), runs in gaps[baseline].dropna().groupby(level=["backbone", *PLACE], sort=False):
            if runs.any():
                where = f"{names.backbone(backbone)} {names.place(*place)}"
                places.append(f"{where} ({runs.sum()} of {counted(len(runs), 'run')})")
        if places:
            title, lead = formats.CLOSURE_TITLES[baseline], f"Oracle's lead in {names.metric.label}"
            chance = "may be chance (at most 1.96 standard errors over sentences)"
            yield (
                f"{title} leaves out runs, in any metric, where {lead} {chance}: {', '.join(places)}. Its means are "
                "conditional: of the other runs alone."
            )


def few_sentences(counts: Iterable[int]) -> list[str]:
    """That intervals over few sentences are too narrow, where some have fewer than :data:`FEW`.

    Shares of 2,000 percentile bootstraps whose 95 % interval held the true mean, of normal, skewed and mostly zero
    differences: 67 to 89 % over 10 sentences, 90 to 93 % over 22, 92 to 95 % over 47, 94 to 96 % over 100.
    """
    if not any(0 < count < FEW for count in counts):
        return []
    problem = f"95 % intervals over fewer than {FEW} sentences are too narrow"
    return [f"{problem}: at N = 20 about 90 % of them hold the true value, at N = 10 even fewer."]


def timing(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where and when latencies were measured: a line for each machine and day; another gives other seconds."""
    lines = []
    for one in measured:
        batches = f", batches of {one['batch']}" if one["batch"] < one["sentences"] else ""
        rounds = counted(len(one["single"]["repeats"]), "round")
        lines.append(
            f"Latency, with the engine's lookahead: median of {rounds}, {counted(one['sentences'], 'sentence')}"
            f"{batches}; {one['device']}, {counted(one['threads'], 'thread')}, torch {one['torch']}, "
            f"{one['precision']}, at most {one['token_budget']} tokens a pass; {one['date']}."
        )
    return list(dict.fromkeys(lines))


def sentences(names: Names, data: Data) -> str:
    """How many sentences each test set of the table has."""
    counts: dict[int, dict[str, None]] = {}
    for cell in data.cells.itertuples():
        counts.setdefault(cell.sentences, {})[names.place(cell.direction, cell.testset)] = None
    if len(counts) == 1:
        return f"N = {next(iter(counts)):,} sentences."
    parts = "; ".join(f"{', '.join(places)}: {count:,}" for count, places in counts.items())
    return f"Sentences (N): {parts}."


# --- What its numbers were made by, in words and as signatures.

# The cells that agree in these coordinates were made by the same, or they do not belong in one table.
SCOPES = {
    "decoder": ["backbone", "order", "steps"],
    "data_digest": PLACE,
    "backbone_digest": ["backbone", "seed"],
    "shifted": ["backbone"],
    "adapter_digest": RUN,
}
BARE = "null"  # the adapter of a backbone that was used as it is
UNLIKE = "They do not belong in one table: remove the outdated files of its set and run again."
ODD = {
    "repeated": "with the source of an earlier one",
    "copied": "with the source as translation",
    "invisible": "with a side without visible characters",
    "hidden": "with characters that cannot be seen",
}


def provenance(
    names: Names, data: Data, count: Callable[[Names], str] | None = None
) -> tuple[list[str], list[tuple[str, str]]]:
    """The lines about sentences, pre-trainings and training; then the signatures, each behind its name. ``count`` says
    how many sentences its numbers are of, where not of all.

    Raises :class:`InputError`, naming two cells, where cells differ that must not.
    """
    cells = data.cells
    require_same_signatures(names, cells)
    approximate = dict.fromkeys(footnote(decoder) for decoder in cells["decoder"] if PART in decoder)
    lines = [
        count(names) if count else sentences(names, data),
        *pretrainings(names, cells),
        *overlaps(names, data),
        *copied(names, cells),
        *fitted(names),
        *filter(None, approximate),
        *made_by(versions(data.files, names.cells)),
    ]
    signed: list[tuple[str, str]] = []
    for metric in names.shown_metrics:
        signed += _signed(names, metric.label, cells, f"signature.{metric.name}")
    signed += _signed(names, "decoder", cells, "decoder")
    signed += [(f"{subject}:", text) for subject, text in _digests(cells).items()]
    return lines, signed


def require_same_signatures(names: Names, cells: pd.DataFrame) -> None:
    """Raise InputError for cells that were made by different things where they must not be."""
    scopes = dict(SCOPES)
    for metric in names.shown_metrics:
        scopes[f"signature.{metric.name}"] = ["direction", "backbone"] if metric.by_direction else []
    for column, scope in scopes.items():
        what = column if column.startswith("signature.") else f"signature.{column}"
        first: dict[tuple[Any, ...], Any] = {}
        for number, cell in enumerate(cells[[*CELL, "set"]].to_dict("records")):
            value = cells[column].iloc[number] if column in cells else None
            if not isinstance(value, str):
                raise InputError(_named(cell), f"no {what}", "Remove its set and run again.")
            other, theirs = first.setdefault(tuple(cell[key] for key in scope), (cell, value))
            if value != theirs:
                raise InputError(_named(cell), f"{what} is {value}, but that of {_named(other)} is {theirs}", UNLIKE)
    _require_own_runs(cells)


def _require_own_runs(cells: pd.DataFrame) -> None:
    """Runs of several seeds have as many adapters: one adapter under two seeds would count as two runs. They start from
    one checkpoint, or each from one of its own."""
    first: dict[str, Any] = {}
    for cell in cells.to_dict("records"):
        other = first.setdefault(cell["adapter_digest"], cell)
        if cell["adapter_digest"] != BARE and other["seed"] != cell["seed"]:
            remedy = "Give each seed an adapter of its own."
            raise InputError(_named(cell), f"has the same adapter as {_named(other)}", remedy)
    for _, runs in cells.groupby("backbone", sort=False):
        of_seeds = runs.drop_duplicates("seed")
        if of_seeds["backbone_digest"].nunique() not in (1, len(of_seeds)):
            cell = of_seeds[of_seeds["backbone_digest"].duplicated(keep=False)].to_dict("records")[-1]
            problem = f"starts from checkpoint {cell['backbone_digest']}, and only some other runs do so"
            raise InputError(_named(cell), problem, UNLIKE)


def _named(cell: Mapping[str, Any]) -> str:
    run = f"seed{cell['seed']}{'-' * bool(cell['pool'])}{cell['pool']}"
    system = f"{cell['method']}/{cell['order']}-T{cell['steps']}" if cell["order"] else cell["method"]
    return f"{cell['direction']}/{cell['backbone']}/{run}/{cell['testset']}/{system}"


def pretrainings(names: Names, cells: pd.DataFrame) -> Iterator[str]:
    """In what the runs of a backbone differ, and so over what a deviation is."""
    own: list[str] = []
    shared: list[str] = []
    for backbone, runs in cells.groupby("backbone", sort=False):
        if runs["seed"].nunique() > 1:
            (own if runs["backbone_digest"].nunique() > 1 else shared).append(names.backbone(str(backbone)))
    if own:
        yield f"Each run of {', '.join(own)} has a pre-training and an adapter of its own."
    if shared:
        whose = "The runs of each other backbone" if own else "The runs of a backbone"
        yield f"{whose} start from the same checkpoint and differ in their adapters."


def made_by(codes: Counter[str]) -> Iterator[str]:
    """Where sets were translated by several versions of the code; ``codes``: how many by each."""
    if len(codes) > 1:
        counts = ", ".join(f"{code[:8]} ({count})" for code, count in codes.most_common())
        yield f"The sets were translated by {len(codes)} versions of the code: {counts}."


def fitted(names: Names) -> Iterator[str]:
    """Which length methods have learned from the development pairs that they are tested on."""
    experiment = names.experiment
    for name in dict.fromkeys(cell.method for cell in names.cells if cell.testset == DEV):
        if declares(experiment, name, "learns"):
            pairs = getattr(getattr(experiment.length_methods, name), "pairs", None)
            which = f"the first {pairs} of these sentences" if pairs else "these sentences"
            yield f"{names.method(name).short} was fitted to {which}."


def overlap_file(root: str, cell: Cell) -> str:
    """The counts of the sentences of a cell's test set that occur in training."""
    return f"{root}/corpus/{cell.direction}/overlap/{cell.testset}.json"


def overlapping(names: Names) -> list[Cell]:
    """A cell of each direction and test set that a fine-tuned backbone has: some sentences may be in training."""
    trained = [cell for cell in names.cells if not names.experiment.backbones[cell.backbone].zero_shot]
    of_place = {(cell.direction, cell.testset): cell for cell in trained}
    places = dict.fromkeys((cell.direction, cell.testset) for cell in names.cells)
    return [of_place[place] for place in places if place in of_place]


def overlaps(names: Names, data: Data) -> Iterator[str]:
    """How many test sentences occur in the training pairs; and what is odd in either, where something is."""
    trained, odd = [], []
    for cell in overlapping(names):
        counts = files.read_json(data.files.file(overlap_file(data.files.root, cell)))
        place, pairs = names.place(cell.direction, cell.testset), counts.get("training", {})
        if "training" in counts:
            trained.append(f"{place} {_in_training(pairs)}")
        odd += [f"{place}: {counts[kind]:,} {text}" for kind, text in ODD.items() if counts.get(kind)]
        odd += [
            f"{place}: {counted(pairs[kind], 'training pair')} {text}" for kind, text in ODD.items() if pairs.get(kind)
        ]
    if trained:
        yield f"Test sentences that occur in training: {'; '.join(trained)}."
    if odd:
        yield f"Odd sentences: {'; '.join(odd)}."


def copied(names: Names, cells: pd.DataFrame) -> Iterator[str]:
    """How many hypotheses are their source, where some are: COMET scores such a copy high."""
    copies = cells[cells.get("copies", pd.Series(0, cells.index)) > 0]
    systems = []
    for (method, backbone, *place), of_system in copies.groupby(["method", "backbone", *PLACE], sort=False):
        system = f"{names.method(method).short}, {names.backbone(backbone)}, {names.place(*place)}"
        systems.append(f"{system} {of_system['copies'].sum():.0f} of {of_system['sentences'].sum():,}")
    if systems:
        yield f"Translations that are a copy of their source: {'; '.join(systems)}."


def _in_training(counts: Mapping[str, int]) -> str:
    if not (counts["source"] or counts["target"]):
        return "none"
    nouns = {"source": "source", "target": "reference", "pair": "pair"}
    return ", ".join(counted(counts[key], noun) for key, noun in nouns.items())


def _signed(names: Names, subject: str, cells: pd.DataFrame, column: str) -> Iterator[tuple[str, str]]:
    """A line for each distinct signature. It names the directions that have it, if not all; and the backbones, if not
    all, where a direction has two signatures."""
    where: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for direction, of_direction in cells.groupby("direction", sort=False):
        several = of_direction[column].nunique() > 1
        for value, rows in of_direction.groupby(column, sort=False):
            backbones = tuple(rows["backbone"].unique()) if several else ()
            where.setdefault((str(value), backbones), []).append(str(direction))
    for (value, backbones), directions in where.items():
        shown = [*map(formats.direction, directions)] if len(directions) < cells["direction"].nunique() else []
        if {*backbones} != {*cells["backbone"]}:
            shown += map(names.backbone, backbones)
        yield f"{subject} {', '.join(shown)}".rstrip() + ":", value


def _digests(cells: pd.DataFrame) -> dict[str, str]:
    """The first digits of the digests of data and checkpoints, whether logits are shifted, and a digest of adapters."""
    data, backbones, logits = {}, {}, {}
    for direction, testset, digest in cells[[*PLACE, "data_digest"]].itertuples(index=False):
        data[f"{direction}/{testset}"] = digest[:SHORT]
    for backbone, rows in cells.groupby("backbone", sort=False):
        digests = sorted(rows["backbone_digest"].unique())
        backbones[backbone] = (
            digests[0][:SHORT] if len(digests) == 1 else f"digest of all:{files.digest(digests)[:SHORT]}"
        )
        logits[backbone] = "shifted" if rows["shifted"].iloc[0] == "true" else "unshifted"
    adapters = sorted({*cells["adapter_digest"]} - {BARE})
    named = {"data": data, "backbones": backbones, "logits": logits}
    lines = {subject: "|".join(map(":".join, values.items())) for subject, values in named.items()}
    return lines | {"adapters": f"{len(adapters)}|digest of all:{files.digest(adapters)[:SHORT]}"}

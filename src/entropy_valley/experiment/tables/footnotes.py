"""What stands below a table: how to read it, and what its numbers were made by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley import files
from entropy_valley.decoding.canvas import PART, footnote
from entropy_valley.errors import InputError
from entropy_valley.experiment.config.matrix import DEV, Cell
from entropy_valley.experiment.config.methods import declares
from entropy_valley.experiment.frames import PLACE, RUN, run_folder
from entropy_valley.experiment.stats import summary
from entropy_valley.experiment.tables import formats
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.results import SHORT, system_of
from entropy_valley.texts import counted

if TYPE_CHECKING:
    from entropy_valley.experiment.tables.report import Data

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
    # What writes from left to right has neither an order nor a budget.
    cells = [cell for cell in names.listed if not cell.autoregressive]
    backbones = ", ".join(map(names.backbone, dict.fromkeys(cell.backbone for cell in cells)))
    # The tables that say this have one setting.
    order = f"reveal order {names.order(cells[0].order)}, T = {cells[0].steps}"
    return f"{'; '.join([backbones, order, *more])}."


def spread(numbers: pd.DataFrame) -> str:
    """What mean and deviation are, with the number of runs; a single run has its value alone."""
    fewest, most = numbers["runs"].min(), numbers["runs"].max()
    # A standard deviation needs two runs.
    if most == 1:
        return "One run (training seed)."
    if fewest == most:
        return f"Mean ± sample standard deviation over {most} runs (training seeds)."
    text = f"Mean ± sample standard deviation over {fewest} to {most} runs (training seeds)."
    return f"{text} A score without ± is of one run." if fewest == 1 else text


def reading(data: Data, numbers: pd.DataFrame) -> list[str]:
    """What mean, deviation, closures and bold are, with the number of runs, and where closures say little."""
    return [
        f"{spread(numbers)} Bold: the best method that sees no reference.",
        "Gap closure: (method − Ratio) / (Oracle − Ratio) in each run, n/a if that lead may be chance; mean ± std.",
        *([SLOT] if "ratio_eos" in set(numbers["method"]) else []),
        ORACLE,
        *(f"{metric.label}: lower is better." for metric in data.shown_metrics if not metric.higher_is_better),
        *doubtful_gaps(data),
    ]


def doubtful_gaps(data: Data, baselines: Iterable[str] = summary.BASELINES) -> Iterator[str]:
    """Where Oracle's lead over a fixed ratio may be chance, so that there is no gap to close."""
    gaps = summary.doubtful_gaps(data.sentences, data.metric.name)
    # A table without closures over a ratio needs no note on them.
    for baseline in baselines:
        if baseline not in gaps:
            continue
        places = []
        for (backbone, *place), runs in gaps[baseline].dropna().groupby(level=["backbone", *PLACE], sort=False):
            if runs.any():
                of_runs = f"{runs.sum()} of {counted(len(runs), 'run')}"
                places.append(f"{data.backbone(backbone)} {data.place(*place)} ({of_runs})")
        if places:
            yield (
                f"{formats.CLOSURE_TITLES[baseline]} leaves out runs, in any metric, where Oracle's lead in "
                f"{data.metric.label} may be chance (at most 1.96 standard errors over sentences): "
                f"{', '.join(places)}. Its means are conditional: of the other runs alone."
            )


def few_sentences(counts: Iterable[int]) -> list[str]:
    """That intervals over few sentences are too narrow, where some have fewer than :data:`FEW`.

    Shares of 2,000 percentile bootstraps whose 95 % interval held the true mean, of normal, skewed and mostly zero
    differences: 67 to 89 % over 10 sentences, 90 to 93 % over 22, 92 to 95 % over 47, 94 to 96 % over 100.
    """
    if not any(0 < count < FEW for count in counts):
        return []
    return [
        f"95 % intervals over fewer than {FEW} sentences are too narrow: at N = 20 about 90 % of them hold the true "
        "value, at N = 10 even fewer."
    ]


def timing(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where and when latencies were measured: a line for each machine and day; another gives other seconds."""
    lines = []
    for one in measured:
        sentences, rounds = counted(one["sentences"], "sentence"), counted(len(one["single"]["repeats"]), "round")
        # A batch of all sentences needs no number.
        batches = f", batches of {one['batch']}" if one["batch"] < one["sentences"] else ""
        lines.append(
            f"Latency, with the engine's lookahead: median of {rounds}, {sentences}{batches}; {one['device']}, "
            f"{counted(one['threads'], 'thread')}, torch {one['torch']}, {one['precision']}, at most "
            f"{one['token_budget']} tokens a pass; {one['date']}."
        )
    return list(dict.fromkeys(lines))


def sentences(data: Data) -> str:
    """How many sentences each test set of the table has."""
    # Test sets of one size share a number.
    counts: dict[int, list[str]] = {}
    for direction, testset, count in data.cells[[*PLACE, "sentences"]].drop_duplicates().itertuples(index=False):
        counts.setdefault(count, []).append(data.place(direction, testset))
    if len(counts) == 1:
        return f"N = {next(iter(counts)):,} sentences."
    parts = "; ".join(f"{', '.join(places)}: {count:,}" for count, places in counts.items())
    return f"Sentences (N): {parts}."


# --- What its numbers were made by, in words and as signatures.

BARE = "null"  # the adapter of a backbone that was used as it is
ODD = {
    "repeated": "with the source of an earlier one",
    "copied": "with the source as translation",
    "invisible": "with a side without visible characters",
    "hidden": "with characters that cannot be seen",
}
IN_TRAINING = {"source": "source", "target": "reference", "pair": "pair"}


def provenance(data: Data) -> list[str]:
    """The lines about pre-trainings, training and code."""
    # The first of these stand open below the table, so what all readers need comes first.
    lines = [*pretrainings(data), *overlaps(data), *copied(data), *fitted(data)]
    for decoder in data.cells["decoder"].unique():
        if PART in decoder:
            lines += filter(None, [footnote(decoder)])
    # How many sets each version of the code has translated.
    codes = Counter(data.cells.drop_duplicates([*RUN, "set"])["code"])
    if len(codes) > 1:
        counts = ", ".join(f"{code[:8]} ({count})" for code, count in codes.most_common())
        lines.append(f"The sets were translated by {len(codes)} versions of the code: {counts}.")
    return lines


def signatures(data: Data) -> list[tuple[str, str]]:
    """What the numbers of a table were made by, each behind its name."""
    signed: list[tuple[str, str]] = []
    for metric in data.shown_metrics:
        signed += _signed(data, metric.label, f"signature.{metric.name}")
    return [*signed, *_signed(data, "decoder", "decoder"), *_digests(data.cells)]


def require_same_signatures(data: Data) -> None:
    """Raise InputError for cells that were decoded or scored by different programs, or that count one run twice.

    What headers tell was compared before, see :mod:`.report`: here is what is different under one config, such as the
    version of sacreBLEU.
    """
    cells, scopes = data.cells, {"decoder": ["backbone", "order", "steps"]}
    for metric in data.shown_metrics:
        scopes[f"signature.{metric.name}"] = ["direction", "backbone"] if metric.by_direction else []
    for column, scope in scopes.items():
        for one, other in _unlike(cells, scope, column):
            problem = f"{column} is {other[column]}, but that of {_named(one)} is {one[column]}"
            raise InputError(_named(other), problem, "Remove the outdated files of its set and run again.")
    for one, other in _unlike(cells[cells["adapter_digest"] != BARE], ["adapter_digest"], "seed"):
        remedy = "Give each seed an adapter of its own."
        raise InputError(_named(other), f"has the same adapter as {_named(one)}", remedy)


def _unlike(cells: pd.DataFrame, scope: list[str], column: str) -> Iterator[tuple[pd.Series, pd.Series]]:
    """Pairs of cells that agree in all of ``scope``, and differ in the column."""
    # Most tables have one value, and a set of thousands of cells is quick to look through.
    distinct = cells.drop_duplicates([*scope, column])
    for _, alike in distinct.groupby(scope, sort=False) if scope else [("all", distinct)]:
        if len(alike) > 1:
            yield alike.iloc[0], alike.iloc[1]


def _named(cell: pd.Series) -> str:
    return f"{run_folder('', cell)[1:]}/{cell['testset']}/{system_of(cell).name}"


def pretrainings(data: Data) -> Iterator[str]:
    """In what the runs of a backbone differ, and so over what a deviation is."""
    own: list[str] = []
    shared: list[str] = []
    for backbone, runs in data.cells.groupby("backbone", sort=False):
        name = data.backbone(backbone)
        seeds, checkpoints = runs["seed"].nunique(), runs["backbone_digest"].nunique()
        # Then a deviation is over both, in unknown parts.
        if 1 < checkpoints < seeds:
            yield f"The {seeds} runs of {name} start from {checkpoints} checkpoints."
        elif seeds > 1:
            (own if checkpoints > 1 else shared).append(name)
    if own:
        yield f"Each run of {', '.join(own)} has a pre-training and an adapter of its own."
    if shared:
        whose = "The runs of each other backbone" if own else "The runs of a backbone"
        yield f"{whose} start from the same checkpoint and differ in their adapters."


def fitted(names: Names) -> Iterator[str]:
    """Which length methods have learned from the development pairs that they are tested on."""
    experiment = names.experiment
    # On a test set nobody has learned from its sentences.
    for name in dict.fromkeys(cell.method for cell in names.listed if cell.testset == DEV):
        if declares(experiment, name, "learns"):
            # Without a number it is fitted to all.
            pairs = getattr(getattr(experiment.length_methods, name), "pairs", None)
            which = f"the first {pairs} of these sentences" if pairs else "these sentences"
            yield f"{names.method(name).short} was fitted to {which}."


def overlap_files(names: Names, root: str) -> dict[str, Cell]:
    """The counts of test sentences that occur in training, in the folder of results ``root``: a file for each direction
    and test set that a fine-tuned backbone has, with one of its cells."""
    paths: dict[str, Cell] = {}
    for cell in names.listed:
        # Any cell of a place will do: they share its test set.
        if not names.experiment.backbones[cell.backbone].zero_shot:
            paths.setdefault(f"{root}/corpus/{cell.direction}/overlap/{cell.testset}.json", cell)
    return paths


def overlaps(data: Data) -> Iterator[str]:
    """How many test sentences occur in the training pairs; and what is odd in either, where something is."""
    trained, odd = [], []
    for path, cell in overlap_files(data, data.files.root).items():
        # The test set's own oddities, and below `training` what of it the training pairs have.
        counts, place = data.files.json(path), data.place(cell.direction, cell.testset)
        pairs = counts.get("training")
        if pairs is not None:
            parts = [counted(pairs[key], noun) for key, noun in IN_TRAINING.items()]
            has_any = pairs["source"] or pairs["target"]
            trained.append(f"{place} {', '.join(parts) if has_any else 'none'}")
        for kind, text in ODD.items():
            if counts.get(kind):
                odd.append(f"{place}: {counts[kind]:,} {text}")
        for kind, text in ODD.items():
            if pairs and pairs.get(kind):
                odd.append(f"{place}: {counted(pairs[kind], 'training pair')} {text}")
    if trained:
        yield f"Test sentences that occur in training: {'; '.join(trained)}."
    if odd:
        yield f"Odd sentences: {'; '.join(odd)}."


def copied(data: Data) -> Iterator[str]:
    """How many hypotheses are their source, where some are: COMET scores such a copy high."""
    cells, systems = data.cells, []
    # A header may lack the count.
    copies = cells[cells["copies"] > 0] if "copies" in cells else cells[:0]
    for (method, backbone, *place), rows in copies.groupby(["method", "backbone", *PLACE], sort=False):
        system = f"{data.method(method).short}, {data.backbone(backbone)}, {data.place(*place)}"
        systems.append(f"{system} {rows['copies'].sum():.0f} of {rows['sentences'].sum():,}")
    if systems:
        yield f"Translations that are a copy of their source: {'; '.join(systems)}."


def _signed(data: Data, subject: str, column: str) -> Iterator[tuple[str, str]]:
    """A line for each distinct signature. It names the directions that have it, if not all; and the backbones, if not
    all, where a direction has two signatures."""
    cells = data.cells
    places: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for direction, of_direction in cells.groupby("direction", sort=False):
        # Metrics that tokenize have a signature for each language; only backbones tell two of one direction apart.
        several = of_direction[column].nunique() > 1
        for value, rows in of_direction.groupby(column, sort=False):
            backbones = tuple(rows["backbone"].unique()) if several else ()
            places.setdefault((value, backbones), []).append(formats.direction(direction))
    for (value, backbones), directions in places.items():
        listed = directions if len(directions) < cells["direction"].nunique() else []
        if {*backbones} != {*cells["backbone"]}:
            listed = [*listed, *map(data.backbone, backbones)]
        yield f"{subject} {', '.join(listed)}".rstrip() + ":", value


def _digests(cells: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """The first digits of the digests of data and checkpoints, whether logits are shifted, and a digest of adapters."""
    # Cells of one test set repeat its digest.
    data = dict.fromkeys(f"{row.direction}/{row.testset}:{row.data_digest[:SHORT]}" for row in cells.itertuples())
    yield "data:", "|".join(data)
    checkpoints, logits = [], []
    for backbone, rows in cells.groupby("backbone", sort=False):
        # Runs may each have a pre-training of their own.
        first, *others = sorted(rows["backbone_digest"].unique())
        digest = _of_all([first, *others]) if others else first[:SHORT]
        shift = "shifted" if rows["shifted"].iloc[0] == "true" else "unshifted"
        checkpoints.append(f"{backbone}:{digest}")
        logits.append(f"{backbone}:{shift}")
    yield "backbones:", "|".join(checkpoints)
    yield "logits:", "|".join(logits)
    # A list of hundreds of digests would say no more than one of all.
    adapters = sorted({*cells["adapter_digest"]} - {BARE})
    yield "adapters:", f"{len(adapters)}|{_of_all(adapters)}"


def _of_all(digests: list[str]) -> str:
    return f"digest of all:{files.digest(digests)[:SHORT]}"

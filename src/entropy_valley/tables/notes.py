"""Footnotes: how to read a table, and what its numbers were made by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from entropy_valley.config.matrix import DEV, Cell
from entropy_valley.config.methods import declares
from entropy_valley.decoding.prompts import PART, footnote
from entropy_valley.errors import listed
from entropy_valley.results import Ancestry
from entropy_valley.stats import summary
from entropy_valley.tables import formats, of_results
from entropy_valley.tables.reader import Results, checkpoints, signatures
from entropy_valley.texts import counted

if TYPE_CHECKING:
    from entropy_valley.tables.base import Report, TableReport


def setting(report: Report, *more: str) -> str:
    """Whose numbers these are: backbones, reveal order and step budget of its cells; and ``more``."""
    cells = [cell for cell in report.cells if not cell.autoregressive]
    backbones = ", ".join(map(report.backbone, dict.fromkeys(cell.backbone for cell in cells)))
    order = f"reveal order {report.order(cells[0].order)}, T = {cells[0].steps}"
    return f"{'; '.join([backbones, order, *more])}."


ODD = {
    "repeated": "with the source of an earlier one",
    "copied": "with the source as translation",
    "invisible": "with a side without visible characters",
}
SLOT = (
    "Closure over Ratio + EOS: the same over the fixed ratio with one slot more for the EOS, as EV and Oracle have it; "
    "none (–) of Ratio, which lacks it."
)

ORACLE = "Oracle takes the reference's length. It is not an upper bound: another length can score higher."


def reading(report: Report, results: Results, summary: pd.DataFrame) -> tuple[str, ...]:
    """What mean, deviation, closures and bold are, with the number of runs, and where closures say little."""
    return (
        *spread(summary),
        "Gap closure: (method − Ratio) / (Oracle − Ratio) in each run, n/a if that lead may be chance; mean ± std.",
        *([SLOT] if "ratio_eos" in set(summary["method"]) else []),
        ORACLE,
        "Bold: the best method that sees no reference.",
        *(f"{metric.label}: lower is better." for metric in report.shown_metrics if not metric.higher_is_better),
        *doubtful_gaps(report, results),
    )


def doubtful_gaps(report: Report, results: Results, baselines: Iterable[str] = summary.BASELINES) -> Iterator[str]:
    """Where Oracle's lead over a fixed ratio may be chance, so that there is no gap to close."""
    gaps = of_results.doubtful_gaps(results, report.cells, report.metric)
    for baseline in baselines:
        counts: dict[str, list[bool]] = {}
        for (name, oracle), doubtful in gaps.items():
            if name == baseline:
                place = f"{report.backbone(oracle.backbone)} {report.place(oracle.direction, oracle.testset)}"
                counts.setdefault(place, []).append(doubtful)
        listed = ", ".join(
            f"{place} ({sum(runs)} of {counted(len(runs), 'run')})" for place, runs in counts.items() if any(runs)
        )
        if listed:
            title, where = formats.closure_title(baseline), f"Oracle's lead in {report.metric.label}"
            chance = "may be chance (at most 1.96 standard errors over sentences)"
            yield f"{title} leaves out runs, in any metric, where {where} {chance}: {listed}."


def spread(summary: pd.DataFrame) -> tuple[str, ...]:
    """What mean and deviation are, with the number of runs; a single run has its value alone."""
    fewest, most = summary["runs"].min(), summary["runs"].max()
    if most == 1:
        return ("One run (training seed).",)
    runs = f"{most} runs" if fewest == most else f"{fewest} to {most} runs"
    single = ("A score without ± is of one run.",) if fewest == 1 else ()
    return (f"Mean ± sample standard deviation over {runs} (training seeds).", *single)


FEW = 50  # sentences


def few_sentences(counts: Iterable[int]) -> tuple[str, ...]:
    """That intervals over few sentences are too narrow, where some have fewer than :data:`FEW`.

    Shares of 2,000 percentile bootstraps whose 95 % interval held the true mean, of normal, skewed and mostly zero
    differences: 67 to 89 % over 10 sentences, 90 to 93 % over 22, 92 to 95 % over 47, 94 to 96 % over 100.
    """
    problem = f"95 % intervals over fewer than {FEW} sentences are too narrow"
    shares = "at N = 20 about 90 % of them hold the true value, at N = 10 even fewer"
    return (f"{problem}: {shares}.",) if any(0 < count < FEW for count in counts) else ()


def timing(measured: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Where and when latencies were measured: a line for each machine and day; another gives other seconds."""
    lines = dict.fromkeys(
        f"Latency, with the engine's lookahead: median of {counted(len(one['single']['repeats']), 'round')}, "
        f"{counted(one['sentences'], 'sentence')}"
        f"{', batches of ' + str(one['batch']) if one['batch'] < one['sentences'] else ''}; "
        f"{one['device']}, "
        f"{counted(one['threads'], 'thread')}, torch {one['torch']}, {one['precision']}, "
        f"at most {one['token_budget']} tokens a pass; {one['date']}."
        for one in measured
    )
    return tuple(lines)


def sentences(report: Report, results: Results) -> str:
    """How many sentences each test set of the table has."""
    counts: dict[int, dict[str, None]] = {}
    for cell in report.cells:
        place = report.place(cell.direction, cell.testset)
        counts.setdefault(results.scores(cell)["sentences"], {})[place] = None
    if len(counts) == 1:
        return f"N = {next(iter(counts)):,} sentences."
    listed = "; ".join(f"{', '.join(places)}: {count:,}" for count, places in counts.items())
    return f"Sentences (N): {listed}."


def provenance(report: TableReport, results: Results) -> tuple[Sequence[str], Sequence[tuple[str, str]]]:
    """The number of sentences and what the numbers were made by, in words; then the signatures, whose names have their
    directions and backbones where not all of the table's have it. Nothing for a table without cells.

    Raises :class:`InputError` for cells that are not comparable, see :func:`.reader.signatures`.
    """
    if not report.cells:
        return (), ()
    of_cells, of_table = signatures(results, report.cells, report.shown_metrics)
    signed = [line for subject, values in of_cells for line in _signed(report, subject, values)]
    signed += [(f"{subject}:", signature) for subject, signature in of_table.items()]
    decoders = dict(of_cells)["decoder"].values()
    approximate = dict.fromkeys(footnote(decoder) for decoder in decoders if PART in decoder)
    lines = [
        report.sentences(results),
        *pretrainings(report, results),
        *overlaps(report, results),
        *fitted(report),
        *filter(None, approximate),
        *made_by(results.ancestry),
    ]
    if results.ancestry.contents:
        signed.append(("seal:", results.ancestry.seal))
    return lines, signed


def pretrainings(report: Report, results: Results) -> Iterator[str]:
    """In what the runs of a backbone differ, and so over what a deviation is."""
    seeds_of = checkpoints(results, report.cells)
    of_backbones = {name: seeds for name, seeds in seeds_of.items() if len(seeds) > 1}
    own = [report.backbone(name) for name, seeds in of_backbones.items() if len(set(seeds.values())) > 1]
    if own:
        yield f"Each run of {', '.join(own)} has a pre-training and an adapter of its own."
    if len(own) < len(of_backbones):
        whose = "The runs of a backbone" if not own else "The runs of each other backbone"
        yield f"{whose} start from the same checkpoint and differ in their adapters."


def made_by(ancestry: Ancestry) -> Iterator[str]:
    """Where results of one rule were made by several versions of the code; and those that no record describes."""
    for rule, versions in ancestry.codes.items():
        if len(versions) > 1:
            names = ", ".join(f"{code[:8]} ({count})" for code, count in versions.most_common())
            yield f"Results of the rule {rule} were made by {len(versions)} versions of the code: {names}."
    if ancestry.bare:
        count = len(ancestry.bare)
        yield f"Results without a record of what they were made from: {count} ({listed(ancestry.bare, 3)})."


def overlaps(report: TableReport, results: Results) -> tuple[str, ...]:
    """How many test sentences occur in the training pairs; and what is odd in either, where something is."""
    found = [(report.place(cell.direction, cell.testset), results.overlap(cell)) for cell in report.overlapping]
    trained = [f"{place} {_in_training(counts)}" for place, counts in found if "training" in counts]
    odd = [f"{place}: {text}" for place, counts in found for text in _odd(counts)]
    return (
        *([f"Test sentences that occur in training: {'; '.join(trained)}."] if trained else []),
        *([f"Odd sentences: {'; '.join(odd)}."] if odd else []),
    )


def fitted(report: TableReport) -> Iterator[str]:
    """Which length methods have learned from the development pairs that they are tested on."""
    experiment = report.experiment
    for name in dict.fromkeys(cell.method for cell in report.cells if cell.testset == DEV):
        if declares(experiment, name, "learns"):
            pairs = getattr(getattr(experiment.length_methods, name), "pairs", None)
            which = f"the first {pairs} of these sentences" if pairs else "these sentences"
            yield f"{report.method(name).short} was fitted to {which}."


def _in_training(counts: Mapping[str, Any]) -> str:
    training = counts["training"]
    if not (training["source"] or training["target"]):
        return "none"
    nouns = {"source": "source", "target": "reference", "pair": "pair"}
    return ", ".join(counted(training[key], noun) for key, noun in nouns.items())


def _odd(counts: Mapping[str, Any]) -> Iterator[str]:
    """What is odd in a test set and its training pairs, each with its number."""
    yield from (f"{counts[kind]:,} {text}" for kind, text in ODD.items() if counts.get(kind))
    pairs = counts.get("training", {})
    yield from (f"{counted(pairs[kind], 'training pair')} {text}" for kind, text in ODD.items() if pairs.get(kind))


def _signed(report: Report, subject: str, values: Mapping[Cell, str]) -> Iterator[tuple[str, str]]:
    """A line for each distinct signature. It names the directions that have it, if not all; and the backbones, if not
    all, where a direction has two signatures."""
    of_directions: dict[str, dict[str, dict[str, None]]] = {}
    for cell, value in values.items():
        of_directions.setdefault(cell.direction, {}).setdefault(value, {})[cell.backbone] = None
    where: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for direction, backbones_of in of_directions.items():
        for value, names in backbones_of.items():
            where.setdefault((value, tuple(names) if len(backbones_of) > 1 else ()), []).append(direction)
    backbones = {cell.backbone for cell in values}
    for (value, some), directions in where.items():
        shown = [*map(formats.direction, directions)] if len(directions) < len(of_directions) else []
        shown += map(report.backbone, some if {*some} != backbones else ())
        yield f"{subject} {', '.join(shown)}".rstrip() + ":", value

"""Studies of reveal orders on the same canvases: how far scores lie apart, and two orders by what a source contains."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley.data.categories import CATEGORIES, categories_of, refused
from entropy_valley.experiment.config.methods import source_guided
from entropy_valley.experiment.frames import PLACE
from entropy_valley.experiment.stats.significance import BOOTSTRAP, paired_test, spearman
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.report import Bold, Data, Names, Row, Shown, aligned, table

RUNS = ["backbone", *PLACE, "steps", "seed"]
FIXED = "oracle"  # the length method under which orders are compared
COSTS = ["sentences", "calls", "slots", "passes"]  # per sentence, but for their number
DELTA = "Δ: mean difference over sentences, percentile bootstrap; p two-sided, not corrected for the number of tests."
Numbers = Mapping[Any, float]


def order_problems(names: Names) -> Iterator[str]:
    main = names.experiment.tables.order
    if main not in {cell.order for cell in names.listed if cell.method == FIXED}:
        yield f"the layout {names.study.layout} needs the method {FIXED} and the order {main}; add both"


def scores_of_runs(data: Data) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame, pd.DataFrame]]:
    """Each run: its key, its cells, and the score of each sentence (rows) by method and order (columns)."""
    # A run is tested by itself: seeds share their sentences.
    for key, cells in data.cells.groupby(RUNS, sort=False):
        rows = data.sentences[(data.sentences[RUNS] == list(key)).all(axis=1)]
        scores = rows.pivot(index="id", columns=["method", "order"], values=data.metric.name)
        # A bootstrap draws by place: the sentences stay in the order of the test set.
        yield key, cells, scores.loc[rows["id"].unique()]


def heading(names: Names, key: Sequence[Any], sentences: float) -> str:
    """Backbone, direction, T, seed and number of sentences of a run."""
    backbone, direction, testset, steps, seed = key
    place = f"{names.backbone(backbone)}, {names.place(direction, testset)}"
    return f"{place}, T = {steps}, training seed {seed}, N = {sentences:.0f}"


# --- Scores of all orders, lead over the main one, cost; then how far they span.


def order_numbers(data: Data) -> pd.DataFrame:
    """The tidy numbers: the columns of RUNS, ``method``, ``order``, ``metric``, ``value``.

    Of each cell: the system scores, ``sentences``, and calls, slots and passes per sentence; of an order under Oracle's
    lengths also the paired test of its main score against the main order's. Of each run (method and order ""):
    ``source_guided_span``, the range of main scores over the orders guided by the source, as in the paper,
    ``main_and_guided_span`` with the main order, ``span`` over all; ``length_span``, the range over the length methods
    under the main order; and, where their cells are there, ``oracle_ratio`` and ``ev_ratio``, their differences under
    the main order, each also over the first of these spans, as ``oracle_ratio_over_span``. NaN where that is 0, or no
    order is guided by the source.
    """
    main, rows = data.experiment.tables.order, []
    for key, cells, scores in scores_of_runs(data):
        for cell in cells.itertuples():
            values = {name: getattr(cell, name) for name in (*(metric.name for metric in data.metrics), *COSTS)}
            # Under other lengths the canvases differ, and so more than the order.
            if cell.method == FIXED and cell.order != main:
                values |= tested(data, scores[FIXED, cell.order], scores[FIXED, main])
            rows += [(*key, cell.method, cell.order, *item) for item in values.items()]
        rows += [(*key, "", "", *item) for item in spans(data, cells).items()]
    return pd.DataFrame(rows, columns=[*RUNS, "method", "order", "metric", "value"])


def tested(names: Names, first: pd.Series, second: pd.Series) -> dict[str, float]:
    """The difference of two orders, sentence by sentence."""
    test = paired_test(first, second, names.statistics)
    return {name: test[name] for name in BOOTSTRAP}


def spans(names: Names, cells: pd.DataFrame) -> dict[str, float]:
    """How far the scores of a run lie apart."""
    main, scores = names.experiment.tables.order, cells.set_index(["method", "order"])[names.metric.name]
    orders, lengths = scores[FIXED], scores.xs(main, level="order")
    guided = orders[[source_guided(names.experiment, order) for order in orders.index]]
    span = guided.max() - guided.min()  # NaN where no order is guided by the source
    values = {
        "source_guided_span": span,
        "main_and_guided_span": np.ptp([*guided, orders[main]]),
        "span": np.ptp(orders),
        "length_span": np.ptp(lengths),
    }
    # What the choice of the length is worth, to compare the span of orders with.
    for name in (FIXED, "ev"):
        if name in lengths and "ratio" in lengths:
            lead = lengths[name] - lengths["ratio"]
            values |= {f"{name}_ratio": lead, f"{name}_ratio_over_span": lead / span if span else math.nan}
    return values


@table(
    "Reveal orders on canvases of the reference's length, each tested against MED, sentence by sentence, in each run "
    "by itself. The last rows say how far the orders lie apart, and how that compares with what the choice of the "
    "length is worth.",
    problems=order_problems,
)
def orders(data: Data) -> Shown:
    """For each run the main order and those guided by the source, the controls, and the spans."""
    numbers, main = order_numbers(data), data.experiment.tables.order
    metrics = [metric.label for metric in data.shown_metrics]
    delta = f"Δ vs {data.order(main)} [95 % CI]"
    columns = aligned("l", "Schedule") + aligned("c", *metrics, delta, "p", "Calls", "Slots", "Passes")
    rows = []
    for key, of_run in numbers.groupby(RUNS, sort=False):
        values = {system: rows["value"] for system, rows in of_run.set_index("metric").groupby(["method", "order"])}
        listed = of_run.loc[of_run["method"] == FIXED, "order"].unique()
        guided = {name for name in listed if source_guided(data.experiment, name)}
        title = heading(data, key, values[FIXED, main]["sentences"])
        # First the main order, then those guided by the source, then the controls.
        for name in sorted(listed, key=lambda name: (name != main, name not in guided)):
            own = values[FIXED, name]
            texts = [data.order(name)]
            texts += [formats.number(own[metric.name], metric.decimals) for metric in data.shown_metrics]
            texts += [*difference_texts(data, own), *(f"{own[cost]:.2f}" for cost in COSTS[1:])]
            rows.append(Row(texts, title if name == main or name in guided else "Additional controls"))
        # The spans stand apart from the orders.
        for number, texts in enumerate(span_texts(data, values["", ""])):
            rows.append(Row([*texts, *[formats.NONE] * (len(columns) - len(texts))], parts=number == 0))
    notes = ["Schedules: the canvas has the reference's length, and as many slots are revealed at each step."]
    notes += [footnotes.NO_BOUND, DELTA]
    # A study without such orders has no span to explain; its runs have the same orders.
    if guided:
        by_source = f"Span: over the schedules by the source (those with SIG), and below with {data.order(main)}."
        notes.append(by_source)
    notes.append(
        "Calls and slots: forward passes per sentence, as the paper counts them, and the canvas slots in these; a step "
        "that looks at the SIG is two. Passes: those really needed."
    )
    return Shown(numbers, columns, rows, notes)


def difference_texts(names: Names, values: Numbers) -> list[str]:
    """The difference with its interval, and its p; dashes where nothing was tested."""
    # The main order is not tested against itself.
    if "delta" not in values:
        return [formats.NONE] * 2
    return [
        formats.lead(values, names.metric),
        formats.p_value(values["p_two_sided"], names.statistics.resamples),
    ]


def span_texts(names: Names, values: Numbers) -> Iterator[list[str]]:
    decimals, main = names.metric.decimals, names.order(names.experiment.tables.order)
    if not pd.isna(values["source_guided_span"]):
        yield ["Source-guided span (max − min)", formats.number(values["source_guided_span"], decimals)]
        yield [f"The same with {main}", formats.number(values["main_and_guided_span"], decimals)]
    for name in (FIXED, "ev"):
        if f"{name}_ratio" in values:
            over = values[f"{name}_ratio_over_span"]
            times = formats.NONE if pd.isna(over) else f"{formats.minus(f'{over:.1f}')}× the span"
            label = f"{names.method(name).short} − {names.method('ratio').short}"
            yield [label, formats.signed(values[f"{name}_ratio"], decimals), formats.NONE, times]


# --- Two orders on a challenge subset: a row for each category of the source, and all together.

OVERALL = "overall"
ORDERED = ("other", "main")  # columns of the mean scores of both orders
CONCENTRATION = (
    "SIG-Concentration: Gini coefficient of max(SIG, 0) over the slots of the all-mask canvas, as in the authors' code."
)


def category_problems(names: Names) -> Iterator[str]:
    listed, main = [*order_problems(names)], names.experiment.tables.order
    if not listed and len({cell.order for cell in names.listed if cell.method == FIXED}) != 2:
        listed = [f"the layout categories compares {main} with one other order; name two"]
    yield from listed
    for direction in dict.fromkeys(cell.direction for cell in names.listed):
        if problem := refused(direction):
            yield f"{problem}; name other directions"


def other_order(names: Names) -> str:
    """The order that is compared with the main one."""
    return next(cell.order for cell in names.listed if cell.order != names.experiment.tables.order)


def category_numbers(data: Data) -> pd.DataFrame:
    """The tidy numbers by category and for the whole subset (:data:`OVERALL`): the columns of RUNS, ``category``,
    ``metric``, ``value``.

    Of each: ``sentences``, ``other`` and ``main``, the mean sentence score of the two orders, and the paired test of
    their difference; of a category without sentences only that there are none. Of the whole also ``spearman_rho`` and
    ``spearman_p`` (two-sided), of the SIG-Concentration with the other order's lead over the main one; NaN where either
    is constant. A run is tested by itself.
    """
    main, rows = data.experiment.tables.order, []
    # All orders of a run have the same sentences.
    texts = data.sentences.drop_duplicates([*RUNS, "id"]).set_index([*RUNS, "id"])
    for key, _, scores in scores_of_runs(data):
        frame = texts.loc[key, ["source", "target", "concentration"]]
        frame = frame.assign(other=scores[FIXED, other_order(data)], main=scores[FIXED, main])
        kinds = [categories_of(pair, key[1]) for pair in zip(frame["source"], frame["target"], strict=True)]
        for name in (*CATEGORIES, OVERALL):
            part = frame if name == OVERALL else frame[[name in listed for listed in kinds]]
            values: dict[str, float] = {"sentences": len(part)}
            # A category without sentences has no mean, and so no test.
            if len(part):
                values |= part[[*ORDERED]].mean().to_dict()
                values |= tested(data, part["other"], part["main"])
            if name == OVERALL:
                test = spearman(frame["concentration"], frame["other"] - frame["main"])
                values |= dict(zip(("spearman_rho", "spearman_p"), test, strict=True))
            rows += [(*key, name, *item) for item in values.items()]
    return pd.DataFrame(rows, columns=[*RUNS, "category", "metric", "value"])


@table(
    "SIG-first against MED on canvases of the reference's length, on sentences whose source has a date, a list, a name "
    "or a number. SIG is how much a slot depends on the source; each run is tested by itself.",
    columns=("source", "target", "concentration"),
    problems=category_problems,
)
def categories(data: Data) -> Shown:
    """Two reveal orders by what the source contains: a section for each run, a row for each category."""
    numbers, metric = category_numbers(data), data.metric
    other, main = data.order(other_order(data)), data.order(data.experiment.tables.order)
    scores = [f"{metric.label} {name}" for name in (other, main)]
    columns = aligned("l", "Category") + aligned("r", "N")
    columns += aligned("c", *scores, f"Δ ({other} − {main}) [95 % CI]", "p")
    rows, correlations = [], []
    for key, of_run in numbers.groupby(RUNS, sort=False):
        values = of_run.set_index(["category", "metric"])["value"]
        title = heading(data, key, values[OVERALL, "sentences"])
        for name in (*CATEGORIES, OVERALL):
            own = values[name]
            texts = [name.capitalize(), f"{own['sentences']:.0f}"]
            # A category without sentences has no scores.
            texts += [formats.dash(formats.number(own.get(one, math.nan), metric.decimals)) for one in ORDERED]
            texts += difference_texts(data, own)
            # The whole stands apart from its parts, in bold type.
            if name == OVERALL:
                rows.append(Row([texts[0], *map(Bold, texts[1:])], parts=True))
            else:
                rows.append(Row(texts, title))
        correlation = formats.signed(values[OVERALL, "spearman_rho"], 4)
        if correlation != formats.NOT_AVAILABLE:
            p, sentences = values[OVERALL, "spearman_p"], values[OVERALL, "sentences"]
            correlation += f", two-sided p = {formats.small_p(p)}, N = {sentences:.0f}"
        of_both = f"Spearman's ρ of a sentence's SIG-Concentration and its {other} − {main}"
        correlations.append(f"{of_both}: {correlation} ({title}).")
    notes = [
        "The canvas has the reference's length. A sentence may be in several categories of its source.",
        footnotes.NO_BOUND,
        DELTA,
        *footnotes.few_sentences(numbers.loc[numbers["metric"] == "sentences", "value"]),
        CONCENTRATION,
        *correlations,
    ]
    return Shown(numbers, columns, rows, notes)

"""The tables of single sentences of EV and the fixed ratios: what EV keeps that Ratio drops, and where EV loses.

What is kept: literal items of the source, and scores by the length ratio r. A sentence's values are averaged over runs
first; the paired tests are then over sentences. The patterns of placeholders and numbers find the paper's numbers of
sentences on WMT22; it does not say how it finds its "capitalised named-entity tokens". Where EV loses: by likely cause.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd

from entropy_valley.data.categories import NUMBER, PLACEHOLDER
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell
from entropy_valley.experiment.frames import PLACE
from entropy_valley.experiment.stats.significance import BOOTSTRAP
from entropy_valley.experiment.stats.summary import by_method, together
from entropy_valley.experiment.tables import footnotes, formats
from entropy_valley.experiment.tables.orders import tested
from entropy_valley.experiment.tables.report import Bold, Column, Data, Names, Row, Shown, aligned, table
from entropy_valley.experiment.tables.scores import main_cells
from entropy_valley.texts import base_language, counted

PLACEHOLDERS, NUMBERS, ENTITIES = "placeholder", "number", "entity"  # as in the transcription of the paper
UNSPACED = ("ja", "zh")  # languages that write words without blanks between them
CAPITALS_MARK_NAMES = ("en", "fr")  # not in German, which capitalises all nouns; Chinese has no capitals
_CAPITALISED = re.compile(r"\b[A-Z]\w+\b")


def capitalised_words(text: str) -> list[str]:
    """Words of two letters or more that begin with a capital; neither the first of the text, nor in a placeholder.

    A heuristic: it also finds the first words of further sentences.
    """
    # The first word of a sentence has a capital whatever it is.
    return _CAPITALISED.findall(PLACEHOLDER.sub(" ", " ".join(text.split()[1:])))


EXTRACTORS: Mapping[str, Callable[[str], Sequence[str]]] = {
    PLACEHOLDERS: PLACEHOLDER.findall,
    NUMBERS: NUMBER.findall,
    ENTITIES: capitalised_words,
}


def extractors(language: str) -> dict[str, Callable[[str], Sequence[str]]]:
    """By kind, in the paper's order, how the items of a source in this language are found."""
    # In other languages a capital says nothing.
    capitals = base_language(language) in CAPITALS_MARK_NAMES
    return {kind: extract for kind, extract in EXTRACTORS.items() if kind != ENTITIES or capitals}


def retention(items: Sequence[str], output: str) -> float:
    """The share of the items that the output contains as they are; an item that the source has twice counts twice."""
    return sum(item in output for item in items) / len(items)


EV, RIVALS = "ev", ("ratio", "ratio_eos")
RETENTION, BUCKET = "retention", "bucket"
FIELDS = [*PLACE, "block", "item", "sentences", "runs", "method", "mean", *BOOTSTRAP, "resamples", "bootstrap_seed"]


LITERAL = (
    "Retention: share of the source's items that the output contains as they are; N sentences have one. Means over "
    "runs, sentence by sentence, then over sentences."
)
TESTS = (
    "Δ: the difference (pp: percentage points), 95 % interval of the paired bootstrap over sentences; * where "
    "its lower end is above zero."
)


READ = ("hypothesis", "source", "source_tokens", "target_tokens")


def ev_and_ratio(experiment: Experiment) -> list[Cell]:
    """EV and the fixed ratios under the main backbone."""
    return [cell for cell in main_cells(experiment) if cell.method in (EV, *RIVALS)]


def rivals_of(numbers: pd.DataFrame, column: str = "method") -> list[str]:
    return [name for name in RIVALS if name in set(numbers[column])]


# --- What EV keeps of the source, and its scores by r.


def coverage_numbers(data: Data) -> pd.DataFrame:
    """The tidy numbers, :data:`FIELDS`: a row for each system of each item of each block.

    ``mean`` is the retention (a share) of the ``sentences`` that have the item, or their main score. Beside a rival of
    EV is the paired test of EV minus it. An item without sentences has NaN.
    """
    rows, how = [], data.statistics
    for place, sentences in data.sentences.groupby(PLACE, sort=False):
        # Means are over runs first: sentences of several seeds are the same ones.
        runs = sentences.groupby("method", sort=False)["seed"].nunique()
        for block, item, part in parts(data, place[0], sentences):
            means = part.pivot_table("value", "id", "method").reindex(part["id"].unique(), columns=runs.index)
            for name, values in means.items():
                about = (*place, block, item, len(means), runs[name], name, values.mean())
                row = dict(zip(FIELDS, about, strict=False))
                row |= {"resamples": how.resamples, "bootstrap_seed": how.seed}
                # A test of no sentences has no p.
                if name in RIVALS and len(means):
                    row |= tested(data, means[EV], values)
                rows.append(row)
    return pd.DataFrame(rows, columns=FIELDS)


def parts(names: Names, direction: str, sentences: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """The items of each block of a direction: the sentences that have it, and their ``value``."""
    for kind, extract in extractors(direction.split("-")[0]).items():
        items = sentences["source"].map(extract)
        # A sentence without an item retains nothing, and loses nothing.
        having = sentences[items.map(len) > 0]
        kept = [retention(*both) for both in zip(items[having.index], having["hypothesis"], strict=True)]
        yield RETENTION, kind, having.assign(value=kept)
    settings = names.experiment.coverage
    if edges := sorted(settings.buckets.get(direction, ())):
        # An empty source counts as one token, as for the length methods.
        ratios = (sentences["target_tokens"] + settings.eos) / sentences["source_tokens"].clip(lower=1)
        # An edge is in the bucket above it; open at both ends, the buckets have every sentence.
        inner = [f"{low:g}<=r<{high:g}" for low, high in itertools.pairwise(edges)]
        labels = [f"r<{edges[0]:g}", *inner, f"r>={edges[-1]:g}"]
        buckets = pd.cut(ratios, [-math.inf, *edges, math.inf], right=False, labels=labels)
        scores = sentences.assign(value=sentences[names.metric.name])
        for name, having in scores.groupby(buckets, observed=False):
            yield BUCKET, str(name), having


@table(
    "What EV keeps of the source, beside the fixed ratio: placeholders, numbers and capitalised words that the output "
    "contains as they are, and {metric} by r, the tokens of the reference over those of the source.",
    ev_and_ratio,
    columns=READ,
    metrics=Names.only_main,
)
def coverage(data: Data) -> Shown:
    """A section for the literal items of each direction, and one for its groups by r."""
    numbers = coverage_numbers(data)
    rivals = rivals_of(numbers)
    columns = heads(data, "Category", rivals)
    for name in rivals:
        columns += aligned("c", "Δ [95 % CI]", over=data.difference(EV, name))
    few = footnotes.few_sentences(numbers["sentences"])
    notes = [*reading(data, numbers), TESTS, *few]
    return Shown(numbers, columns, [*item_rows(data, numbers, tested=True)], notes)


@table(
    "Retention of placeholders and numbers, and {metric} where references are short or long for their source: a "
    "summary of the table coverage.",
    # Those of the directions with groups by r.
    lambda experiment: [cell for cell in ev_and_ratio(experiment) if cell.direction in experiment.coverage.buckets],
    columns=READ,
    metrics=Names.only_main,
)
def faithfulness_summary(data: Data) -> Shown:
    """The rows of :func:`coverage` that the paper has in its text: the literal items but names, the last bucket, and
    the first one."""
    numbers = coverage_numbers(data)
    buckets = numbers[numbers["block"] == BUCKET]
    # The ends of the scale, which a fixed ratio fits least.
    last, first = (buckets.groupby(PLACE, sort=False)["item"].transform(end) for end in ("last", "first"))
    literal = numbers[(numbers["block"] == RETENTION) & (numbers["item"] != ENTITIES)]
    ends = [literal, buckets[buckets["item"] == last], buckets[buckets["item"] == first]]
    numbers = pd.concat(ends, ignore_index=True)
    rows = [*item_rows(data, together(numbers, PLACE), tested=False)]
    return Shown(numbers, heads(data, "Diagnostic", rivals_of(numbers)), rows, reading(data, numbers))


def item_rows(names: Names, numbers: pd.DataFrame, tested: bool) -> Iterator[Row]:
    """A row for each item: N, the values of the fixed ratios and EV; dashes where N is 0. If ``tested``, also EV's lead
    over each of the former, in a section of the block; else with a longer name."""
    printed = {PLACEHOLDERS: "Placeholders", NUMBERS: "Numbers", ENTITIES: "Capitalised words"}
    for (*place, block, item), systems in numbers.groupby([*PLACE, "block", "item"], sort=False):
        label = printed.get(item) or item.replace(">=", " ≥ ").replace("<=", " ≤ ").replace("<", " < ")
        # The summary has one section a direction, so its labels say more.
        section, metric = names.place(*place), names.metric.label
        if tested:
            section += ": retention, Δ in pp" if block == RETENTION else f": {metric} by r"
        else:
            label = f"{label.removesuffix('s')} retention" if block == RETENTION else f"{label}: {metric}"
        of_method, rivals = systems.set_index("method"), rivals_of(systems)
        means = of_method.loc[[*rivals, EV], "mean"]
        texts = [label, str(systems["sentences"].iloc[0])]
        for mean in means:
            text = formats.percent(mean) if block == RETENTION else formats.number(mean, names.metric.decimals)
            # Without a sentence there is no mean, and so no test either.
            texts.append(Bold(text) if mean == means.max() > means.min() else formats.dash(text))
        # Differences of shares are in percentage points.
        scale, decimals = (100, 1) if block == RETENTION else (1, names.metric.decimals)
        for name in rivals if tested else ():
            delta, low, high = scale * of_method.loc[name, ["delta", "ci_low", "ci_high"]]
            texts.append(formats.dash(formats.interval(delta, low, high, decimals)) + "*" * bool(low > 0))
        yield Row(texts, section)


def heads(names: Names, first: str, rivals: Sequence[str]) -> list[Column]:
    """The titles of all but EV's leads."""
    methods = [names.method(name).short for name in (*rivals, EV)]
    return aligned("l", first) + aligned("r", "N") + aligned("c", *methods)


def reading(data: Data, numbers: pd.DataFrame) -> list[str]:
    """Whose outputs these are, and what is counted."""
    runs = counted(int(numbers["runs"].max()), "run")
    reference = "the reference and its EOS" if data.experiment.coverage.eos else "the reference, without its EOS"
    bold = f"Bold: the best. r: tokens of {reference}, over those of the source."
    return [footnotes.setting(data, runs), LITERAL, *unspaced(data), bold]


def unspaced(data: Data) -> Iterator[str]:
    """How many sources have digits, where words are not separated by blanks: the rule for numbers finds few."""
    for place, rows in data.sentences.groupby(PLACE, sort=False):
        if base_language(place[0].split("-")[0]) in UNSPACED:
            # Each source comes once a method and seed.
            sources = rows.drop_duplicates("id")["source"]
            digits = sum(any(map(str.isdigit, text)) for text in sources)
            having = f"{digits} of {len(sources)} sources have digits"
            rule = "the rule that fits the paper's counts finds only those that touch no character"
            yield f"Numbers of {data.place(*place)}: {having}; {rule}."


# --- The sentences on which EV scores below the fixed ratio, by likely cause.

OF_RUN = [*PLACE, "seed"]
SHORTEST = 3  # tokens of a very short source
LABELS = {
    "very_short": "Very short source",
    "overshoot": "Overshoot beyond grid",
    "under_compression": "Under-compression",
    "within_grid": "Within-grid wrong pick",
    "all": "All losses",
}
RULES = (
    f"The first rule that fits. Very short source: at most {SHORTEST} tokens. Overshoot: the reference's canvas (its "
    "tokens and the EOS) is below EV's smallest candidate. Under-compression: above its largest. Else within the grid."
)


def cause(source_tokens: int, reference_canvas: int, candidates: Sequence[int]) -> str:
    """The first of :data:`LABELS` that fits a sentence; ``candidates`` are the lengths that EV compared.

    The reference's canvas (its tokens and the EOS) may lie below all candidates, above all, or between them.
    """
    # A source this short is no matter of the grid.
    if source_tokens <= SHORTEST:
        return "very_short"
    if reference_canvas < min(candidates):
        return "overshoot"
    return "under_compression" if reference_canvas > max(candidates) else "within_grid"


def losses(data: Data) -> pd.DataFrame:
    """By run (``statistic`` "run"), then the mean over runs ("mean", no seed).

    ``losses``: sentences on which EV scores below the ``rival``; ``share`` of all losses; ``delta``: mean of EV minus
    the rival over them in the main metric, NaN where there is none.
    """
    sentences = data.sentences
    scores = by_method(sentences, data.metric.name, OF_RUN)
    ev = sentences[sentences["method"] == EV].set_index([*OF_RUN, "id"])
    tokens = zip(ev["source_tokens"], ev["target_tokens"], ev["canvas"], strict=True)
    # The cause is of the sentence and of the grid, whatever the rival.
    causes = pd.Series([cause(x, y + 1, canvas["candidates"]) for x, y, canvas in tokens], ev.index)
    parts = []
    for rival, name in itertools.product(rivals_of(sentences), LABELS):
        delta = scores[EV] - scores[rival]
        # What is no loss is NaN, which neither counts nor means anything.
        lost = delta.where((delta < 0) & ((causes == name) | (name == "all")))
        part = lost.groupby(OF_RUN, sort=False).agg(sentences="size", losses="count", delta="mean")
        parts.append(part.assign(rival=rival, cause=name).reset_index())
    runs = together(pd.concat(parts, ignore_index=True), OF_RUN)
    # A run without a loss has no shares.
    runs["share"] = runs["losses"] / runs.groupby([*OF_RUN, "rival"])["losses"].transform("max")
    groups = runs.groupby([*PLACE, "rival", "cause"], sort=False)
    means = groups[["sentences", "losses", "share", "delta"]].mean().assign(runs=groups.size()).reset_index()
    whole = pd.concat([runs.assign(statistic="run", runs=1), means.assign(statistic="mean")], ignore_index=True)
    return whole[[*OF_RUN, "statistic", "runs", "sentences", "rival", "cause", "losses", "share", "delta"]]


@table(
    "Sentences on which EV scores below the fixed ratio in {metric}, by likely cause: how many, which share of all "
    "such sentences, and by how much EV scores less.",
    ev_and_ratio,
    columns=("source_tokens", "target_tokens", "canvas"),
    metrics=Names.only_main,
)
def failure_buckets(data: Data) -> Shown:
    """A section for each direction; beside the paper's Ratio that with the slot for the EOS."""
    numbers = losses(data)
    means = numbers[numbers["statistic"] == "mean"]
    rows = []
    for place, of_place in means.groupby(PLACE, sort=False):
        heading = f"{data.place(*place)}, N = {of_place['sentences'].iloc[0]:.0f}"
        for name, of_cause in of_place.groupby("cause", sort=False):
            texts = []
            # The rivals stand side by side.
            for row in of_cause.itertuples():
                share = formats.percent(row.share) if row.losses else formats.NONE
                delta = formats.signed(row.delta, data.metric.decimals)
                # A mean over runs of whole numbers has a decimal.
                texts += [f"{row.losses:.{int(row.runs > 1)}f}", share, formats.dash(delta)]
            rows.append(Row([LABELS[str(name)], *(map(Bold, texts) if name == "all" else texts)], heading))
    columns = aligned("l", "Likely cause")
    for name in rivals_of(means, "rival"):
        over = f"Against {data.method(name).short}"
        columns += aligned("c", "Losses", "Share", f"Mean Δ {data.metric.label}", over=over)
    runs = means["runs"].max()
    what = f"means over {runs} runs, each run by itself is in the CSV" if runs > 1 else "one run"
    return Shown(numbers, columns, rows, [footnotes.setting(data, what), RULES])

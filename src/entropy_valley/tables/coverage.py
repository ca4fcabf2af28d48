"""The tables of what EV keeps that Ratio drops: literal items of the source, and scores by the length ratio r.

A sentence's values are averaged over runs first; the paired tests are then over sentences. The patterns of placeholders
and numbers find the paper's numbers of sentences on WMT22; it does not say how it finds its "capitalised named-entity
tokens".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.config import Experiment, matrix
from entropy_valley.config.schema import metrics_of
from entropy_valley.data.categories import NUMBER, PLACEHOLDER
from entropy_valley.model.families import find_family
from entropy_valley.stats.closure import require_sentences
from entropy_valley.stats.comparisons import by_run
from entropy_valley.stats.paper_numbers import find
from entropy_valley.stats.significance import paired_test
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.labels import method
from entropy_valley.tables.pivot import best
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

PLACEHOLDERS, NUMBERS, ENTITIES = "placeholder", "number", "entity"  # as in the transcription of the paper
UNSPACED = ("ja", "zh")  # languages that write words without blanks between them
CAPITALS_MARK_NAMES = ("en", "fr")  # not in German, which capitalises all nouns; Chinese has no capitals
_CAPITALISED = re.compile(r"\b[A-Z]\w+\b")


def capitalised_words(text: str) -> list[str]:
    """Words of two letters or more that begin with a capital; neither the first of the text, nor in a placeholder.

    A heuristic: it also finds the first words of further sentences.
    """
    _, *others = text.split() or [""]
    return _CAPITALISED.findall(PLACEHOLDER.sub(" ", " ".join(others)))


EXTRACTORS: Mapping[str, Callable[[str], Sequence[str]]] = {
    PLACEHOLDERS: PLACEHOLDER.findall,
    NUMBERS: NUMBER.findall,
    ENTITIES: capitalised_words,
}


def extractors(language: str) -> dict[str, Callable[[str], Sequence[str]]]:
    """By kind, in the paper's order, how the items of a source in this language are found."""
    return {
        kind: extract for kind, extract in EXTRACTORS.items() if kind != ENTITIES or language in CAPITALS_MARK_NAMES
    }


def retention(items: Sequence[str], output: str) -> float:
    """The share of the items that the output contains as they are; an item that the source has twice counts twice.

    Raises ValueError where there is none.
    """
    if not items:
        raise ValueError("no items: their retention is not defined")
    return sum(item in output for item in items) / len(items)


PLACE = ("direction", "testset")
System = tuple[str, int]  # method and seed
EV, RIVALS = "ev", ("ratio", "ratio_eos")
RETENTION, BUCKET = "retention", "bucket"
TESTED = ("delta", "ci_low", "ci_high", "p_one_sided", "p_two_sided")
FIELDS = [*PLACE, "block", "item", "sentences", "runs", "method", "mean", *TESTED, "resamples", "bootstrap_seed"]


def coverage(params: Params) -> pd.DataFrame:
    """The tidy numbers, :data:`FIELDS`: a row for each system of each item of each block.

    ``mean`` is the retention (a share) of the ``sentences`` that have the item, or their main score. Beside a rival of
    EV is the paired test of EV minus it. An item without sentences has NaN.
    """
    places = by_run(params.cells, PLACE, attrgetter("method", "seed"))
    rows = (dict(zip(PLACE, place, strict=True)) | row for place in places for row in _rows(params, places[place]))
    return pd.DataFrame(rows, columns=FIELDS)


def bucket_names(edges: Sequence[float]) -> list[str]:
    """``r<0.6``, ``0.6<=r<0.8``, ``r>=0.8``: the buckets that the ascending edges make."""
    inner = [f"{low:g}<=r<{high:g}" for low, high in itertools.pairwise(edges)]
    return [f"r<{edges[0]:g}", *inner, f"r>={edges[-1]:g}"]


def bucket(ratio: float, edges: Sequence[float]) -> int:
    """In which of :func:`bucket_names` a ratio is; an edge belongs to the bucket above it."""
    return sum(ratio >= edge for edge in edges)


def papers_count(direction: str, item: str) -> int | None:
    """On how many sentences of WMT22 the paper finds an item, or a ratio r of a bucket; None where it does not say."""
    number = find("tab:coverage", "sentences", direction=direction, setting=item)
    return int(number.value) if number else None


def read_tokens(path: str) -> dict[str, tuple[int, int]]:
    """|x| and the reference's tokens (without its EOS) of each sentence, by id."""
    rows = files.read_jsonl(path, ("id", "source_tokens", "target_tokens"))
    return {row["id"]: (row["source_tokens"], row["target_tokens"]) for row in rows}


def _rows(params: Params, cells: Mapping[System, ScoredCell]) -> Iterator[dict[str, Any]]:
    """The rows of one direction and test set."""
    first = next(iter(cells.values()))
    testset = params["testsets"][first.name]
    sources = {row["id"]: row["source"] for row in files.read_jsonl(testset, ("id", "source"))}
    outputs = {key: hypotheses(cell, testset, sources) for key, cell in cells.items()}
    for kind, extract in extractors(first.direction.split("-")[0]).items():
        wanted = {name: items for name, text in sources.items() if (items := extract(text))}
        yield from _compared(params, RETENTION, kind, {key: _kept(wanted, texts) for key, texts in outputs.items()})
    if edges := params["buckets"].get(first.direction):
        scores = {key: _scores(params, cell, testset, sources) for key, cell in cells.items()}
        number = _buckets(params, first, testset, sources)
        for at, name in enumerate(bucket_names(edges)):
            ids = [one for one in sources if number[one] == at]
            yield from _compared(params, BUCKET, name, {key: values.loc[ids] for key, values in scores.items()})


def hypotheses(cell: ScoredCell, testset: str, ids: Iterable[str]) -> dict[str, str]:
    """The translations of a cell by id; InputError unless they are of the sentences ``ids`` of ``testset``, a file."""
    texts = {row["id"]: row["hypothesis"] for row in cell.translations()}
    require_sentences(cell.within(cell.translations_file), texts, testset, ids)
    return texts


def _scores(params: Params, cell: ScoredCell, testset: str, ids: Iterable[str]) -> pd.Series:
    scores = sentences(cell, params.metric)
    require_sentences(cell.within(cell.scores_file), scores.index, testset, ids)
    return scores


def _kept(wanted: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> pd.Series:
    return pd.Series({name: retention(items, texts[name]) for name, items in wanted.items()}, dtype=float)


def _buckets(params: Params, cell: ScoredCell, testset: str, ids: Iterable[str]) -> dict[str, int]:
    """The place of each sentence's bucket."""
    path, edges = params["tokens"][cell.name], params["buckets"][cell.direction]
    tokens = read_tokens(path)
    require_sentences(path, tokens, testset, ids)
    return {name: bucket((target + params["eos"]) / max(1, source), edges) for name, (source, target) in tokens.items()}


def _compared(params: Params, block: str, item: str, systems: Mapping[System, pd.Series]) -> Iterator[dict[str, Any]]:
    """A row for each method: its mean over sentences of the mean over runs, and EV's lead over it."""
    runs: dict[str, list[pd.Series]] = {}
    for (name, _), values in systems.items():
        runs.setdefault(name, []).append(values)
    means = {name: sum(values) / len(values) for name, values in runs.items()}
    for name, values in means.items():
        row = {"block": block, "item": item, "sentences": len(values), "runs": len(runs[name]), "method": name}
        row |= {"mean": float(values.mean()), "resamples": params.how.resamples, "bootstrap_seed": params.how.seed}
        if name in RIVALS and len(values):
            test = asdict(paired_test(means[EV], values, params.how))
            row |= {key: test[key] for key in TESTED}
        yield row


WMT22 = "wmt22"  # the test set of the paper, in config.yaml and in config/authors.yaml
LITERAL = Note(
    "Retention: share of the source's items that the output contains as they are; N sentences have one. Means over "
    "runs, sentence by sentence, then over sentences."
)
TESTS = Note(
    "Δ: EV − the fixed ratio (pp: percentage points), 95 % interval of the paired bootstrap over sentences; * where "
    "its lower end is above zero."
)


class OfEvAndRatio(TableReport):
    """A table of EV and the fixed ratios under the main backbone that reads sentences and their token counts."""

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        cells = matrix.table_cells(experiment, experiment.tables.backbone)
        return [cell for cell in cells if cell.method in (EV, *RIVALS)]

    def inputs(self, experiment: Experiment) -> list[str]:
        cells = self.cells(experiment)
        further = ((testset_file(experiment, cell), tokens_file(experiment, cell)) for cell in cells)
        return [*super().inputs(experiment), *dict.fromkeys(itertools.chain.from_iterable(further))]

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        paths = {cell.name: cell for cell in cells}
        return {
            "shown": [metrics_of(experiment.scoring)[0].name],
            "testsets": {path: testset_file(experiment, cell) for path, cell in paths.items()},
            "tokens": {path: tokens_file(experiment, cell) for path, cell in paths.items()},
        }


class CoverageTable(OfEvAndRatio):
    """A section for the literal items of each direction, and one for its groups by r."""

    caption = (
        "What EV keeps of the source, beside the fixed ratio: placeholders, numbers and capitalised words that the "
        "output contains as they are, and {metric} by r, the tokens of the reference over those of the source."
    )

    def extra(self, experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, Any]:
        settings, directions = experiment.coverage, {cell.run.direction for cell in cells}
        buckets = {name: sorted(edges) for name, edges in settings.buckets.items() if name in directions}
        further = {"buckets": buckets, "eos": settings.eos, "paper": _papers_numbers(experiment, cells)}
        return super().extra(experiment, cells) | further

    def numbers(self, params: Params) -> pd.DataFrame:
        return coverage(params)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        sections = []
        for (*place, block), rows in numbers.groupby([*PLACE, "block"], sort=False):
            what = "retention, Δ in pp" if block == RETENTION else f"{params.metric.label} by r"
            sections.append(TableSection(_groups(params, rows), f"{params.place(*place)}: {what}"))
        rivals = [name for name in RIVALS if name in set(numbers["method"])]
        deltas = (Column("[95 % CI]", f"Δ over {method(name).short}") for name in rivals)
        columns = (*_heads("Category", rivals), *deltas)
        tested = (TESTS, *notes.few_sentences(numbers["sentences"]), *_beside_the_papers(params, numbers))
        return Table(columns, tuple(sections), (*_notes(params, numbers), *tested))


class FaithfulnessSummary(CoverageTable):
    """The rows of :class:`CoverageTable` that the paper has in its text, of the directions with groups by r."""

    caption = (
        "Retention of placeholders and numbers, and {metric} where references are short or long for their source: a "
        "summary of the table coverage."
    )

    def cells(self, experiment: Experiment) -> list[matrix.Cell]:
        return [cell for cell in super().cells(experiment) if cell.run.direction in experiment.coverage.buckets]

    def numbers(self, params: Params) -> pd.DataFrame:
        """Those of the literal items but names, of the last bucket, and of the first one."""
        numbers = super().numbers(params)
        buckets = numbers[numbers["block"] == BUCKET]
        ends = [buckets.groupby(list(PLACE), sort=False)["item"].transform(end) for end in ("last", "first")]
        literal = numbers[(numbers["block"] == RETENTION) & (numbers["item"] != ENTITIES)]
        return pd.concat([literal, *(buckets[buckets["item"] == end] for end in ends)], ignore_index=True)

    def table(self, params: Params, numbers: pd.DataFrame) -> Table:
        sections = [
            TableSection(_groups(params, rows, tested=False), params.place(*place))
            for place, rows in numbers.groupby(list(PLACE), sort=False)
        ]
        rivals = [name for name in RIVALS if name in set(numbers["method"])]
        return Table(_heads("Diagnostic", rivals), tuple(sections), _notes(params, numbers))


def _papers_numbers(experiment: Experiment, cells: Sequence[matrix.Cell]) -> dict[str, dict[str, int]]:
    """By direction, the numbers of sentences that the paper has, where its own test set is looked at whole.

    Those of buckets also depend on the tokenizer: they go with LLaDA's released one.
    """
    source, section = experiment.sources.get(WMT22), experiment.backbones[experiment.tables.backbone]
    if source is None or source.limit or source.challenge or experiment.corpus.test_limit:
        return {}
    hub = section.hub if section.family == "llada" and not section.pretraining else None
    released = hub and find_family(section.family).release(hub.repository)
    printed: dict[str, dict[str, int]] = {}
    for name in dict.fromkeys(cell.run.direction for cell in cells if cell.testset == WMT22):
        edges = sorted(experiment.coverage.buckets.get(name, ()))
        items = [*extractors(name.split("-")[0]), *(bucket_names(edges) if released and edges else ())]
        counts = {item: count for item in items if (count := papers_count(name, item)) is not None}
        printed |= {name: counts} if counts else {}
    return printed


def _heads(first: str, rivals: Sequence[str]) -> tuple[Column, ...]:
    systems = (Column(method(name).short) for name in (*rivals, EV))
    return (Column(first, align="l"), Column("N", align="r"), *systems)


def _groups(params: Params, rows: pd.DataFrame, tested: bool = True) -> tuple[Group, ...]:
    """A row for each item."""
    items = (
        (block, item, {row.method: row for row in part.itertuples(index=False)})
        for (block, item), part in rows.groupby(["block", "item"], sort=False)
    )
    return tuple(
        Group(_label(params, block, item, tested), (TableRow(_cells(params, block, systems, tested)),))
        for block, item, systems in items
    )


def _label(params: Params, block: str, item: str, tested: bool) -> str:
    """What the row is of; the heading says the rest where there is one for each block."""
    name = _item(item)
    if tested:
        return name
    return f"{name.removesuffix('s')} retention" if block == RETENTION else f"{name}: {params.metric.label}"


def _item(name: str) -> str:
    """A kind of items or a bucket as it is printed: Placeholders, r ≥ 0.8."""
    printed = {PLACEHOLDERS: "Placeholders", NUMBERS: "Numbers", ENTITIES: "Capitalised words"}
    return printed.get(name) or name.replace(">=", " ≥ ").replace("<=", " ≤ ").replace("<", " < ")


def _cells(params: Params, block: str, systems: Mapping[str, Any], tested: bool) -> tuple[TableCell, ...]:
    """N, the values of the fixed ratios and EV, and EV's lead over each of the former; dashes where N is 0."""
    count, rivals = systems[EV].sentences, [name for name in RIVALS if name in systems]
    shown = [systems[name] for name in (*rivals, EV)]
    if not count:
        return tuple(map(TableCell, ["0", *[formats.NONE] * (len(shown) + tested * len(rivals))]))
    choose = max if block == RETENTION else best(params.metric)
    means = [row.mean for row in shown]
    top = choose(means) if len(set(means)) > 1 else None
    values = [TableCell(_value(params, block, mean), bold=mean == top) for mean in means]
    leads = [TableCell(_lead(params, block, systems[name])) for name in rivals if tested]
    return (TableCell(str(count)), *values, *leads)


def _value(params: Params, block: str, mean: float) -> str:
    none = float("nan")  # a deviation over sentences is not one over runs
    return formats.percent(mean, none) if block == RETENTION else formats.number(mean, params.metric.decimals)


def _lead(params: Params, block: str, test: Any) -> str:
    scale, decimals = (100, 1) if block == RETENTION else (1, params.metric.decimals)
    values = (scale * value for value in (test.delta, test.ci_low, test.ci_high))
    return formats.interval(*values, decimals) + "*" * bool(test.ci_low > 0)


def _notes(params: Params, numbers: pd.DataFrame) -> tuple[Note, ...]:
    """Whose outputs these are, and what is counted."""
    cell, runs = params.cells[0], int(numbers["runs"].max())
    setting = f"{params.label('backbones', cell.backbone)}; reveal order {cell.order}, T = {cell.steps}; "
    reference = "the reference and its EOS" if params["eos"] else "the reference, without its EOS"
    bold = Note(f"Bold: the best. r: tokens of {reference}, over those of the source.")
    return (Note(f"{setting}{runs} run{'s' * (runs > 1)}."), LITERAL, *_unspaced(params), bold)


def _unspaced(params: Params) -> Iterator[Note]:
    """How many sources have digits, where words are not separated by blanks: the rule for numbers finds few of them."""
    testsets = {(cell.direction, cell.testset): params["testsets"][cell.name] for cell in params.cells}
    for (direction, testset), path in testsets.items():
        if direction.split("-")[0] in UNSPACED:
            sources = [row["source"] for row in files.read_jsonl(path, ("id", "source"))]
            having = f"{sum(any(map(str.isdigit, text)) for text in sources)} of {len(sources)} sources have digits"
            rule = "the authors' rule counts only those that touch no character"
            yield Note(f"Numbers of {params.place(direction, testset)}: {having}; {rule}.")


def _beside_the_papers(params: Params, numbers: pd.DataFrame) -> list[Note]:
    """For each direction whose sentences the paper counts, where its numbers and ours differ."""
    lines = []
    for direction, counts in params["paper"].items():
        rows = numbers[(numbers["direction"] == direction) & (numbers["method"] == EV)].itertuples(index=False)
        counted = ((row, counts[row.item]) for row in rows if row.item in counts)
        other = [f"{_item(row.item)} ({row.sentences}; paper: {n})" for row, n in counted if row.sentences != n]
        text = f"as in the paper but for {', '.join(other)}" if other else "as in the paper"
        lines.append(Note(f"N of {params.label('directions', direction)}: {text}."))
    return lines

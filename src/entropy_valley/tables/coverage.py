"""The tables of single sentences of EV and the fixed ratios: what EV keeps that Ratio drops, and where EV loses.

What is kept: literal items of the source, and scores by the length ratio r. A sentence's values are averaged over runs
first; the paired tests are then over sentences. The patterns of placeholders and numbers find the paper's numbers of
sentences on WMT22; it does not say how it finds its "capitalised named-entity tokens". Where EV loses: by likely cause.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import pandas as pd

from entropy_valley.config import matrix
from entropy_valley.data.categories import NUMBER, PLACEHOLDER
from entropy_valley.stats.significance import BOOTSTRAP, paired_test
from entropy_valley.tables import formats, notes
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.of_results import PLACE, by_run
from entropy_valley.tables.reader import Results, testset_file, tokens_file
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableSection
from entropy_valley.texts import counted

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


System = tuple[str, int]  # method and seed
EV, RIVALS = "ev", ("ratio", "ratio_eos")
RETENTION, BUCKET = "retention", "bucket"
FIELDS = [*PLACE, "block", "item", "sentences", "runs", "method", "mean", *BOOTSTRAP, "resamples", "bootstrap_seed"]


def bucket_names(edges: Sequence[float]) -> list[str]:
    """``r<0.6``, ``0.6<=r<0.8``, ``r>=0.8``: the buckets that the ascending edges make."""
    inner = [f"{low:g}<=r<{high:g}" for low, high in itertools.pairwise(edges)]
    return [f"r<{edges[0]:g}", *inner, f"r>={edges[-1]:g}"]


def bucket(ratio: float, edges: Sequence[float]) -> int:
    """In which of :func:`bucket_names` a ratio is; an edge belongs to the bucket above it."""
    return sum(ratio >= edge for edge in edges)


def hypotheses(results: Results, cell: matrix.Cell) -> dict[str, str]:
    """The translations of a cell by id."""
    return {row["id"]: row["hypothesis"] for row in results.translations(cell)}


def _kept(wanted: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> pd.Series:
    return pd.Series({name: retention(items, texts[name]) for name, items in wanted.items()}, dtype=float)


LITERAL = (
    "Retention: share of the source's items that the output contains as they are; N sentences have one. Means over "
    "runs, sentence by sentence, then over sentences."
)
TESTS = (
    "Δ: the difference (pp: percentage points), 95 % interval of the paired bootstrap over sentences; * where "
    "its lower end is above zero."
)


class OfEvAndRatio(TableReport):
    """A table of EV and the fixed ratios under the main backbone that reads sentences and their token counts."""

    texts, bleu = True, False
    reads = (testset_file, tokens_file)

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        return [cell for cell in self.main_cells if cell.method in (EV, *RIVALS)]


def tokens_of(results: Results, cell: matrix.Cell) -> dict[str, tuple[int, int]]:
    """|x| and the reference's tokens (without its EOS) of each sentence of a cell's test set, by id."""
    return {row["id"]: (row["source_tokens"], row["target_tokens"]) for row in results.tokens(cell)}


# --- What EV keeps of the source, and its scores by r.


class CoverageTable(OfEvAndRatio):
    """A section for the literal items of each direction, and one for its groups by r."""

    caption = (
        "What EV keeps of the source, beside the fixed ratio: placeholders, numbers and capitalised words that the "
        "output contains as they are, and {metric} by r, the tokens of the reference over those of the source."
    )

    recorded = ("buckets", "eos")

    @functools.cached_property
    def buckets(self) -> dict[str, list[float]]:
        """The edges of the groups by r, of each direction that has some."""
        directions = {cell.direction for cell in self.cells}
        return {name: sorted(edges) for name, edges in self.experiment.coverage.buckets.items() if name in directions}

    @property
    def eos(self) -> bool:
        """Whether r counts the reference's EOS."""
        return self.experiment.coverage.eos

    def numbers(self, results: Results) -> pd.DataFrame:
        """The tidy numbers, :data:`FIELDS`: a row for each system of each item of each block.

        ``mean`` is the retention (a share) of the ``sentences`` that have the item, or their main score. Beside a rival
        of EV is the paired test of EV minus it. An item without sentences has NaN.
        """
        places = by_run(self.cells, PLACE, attrgetter("method", "seed"))
        rows = (
            dict(zip(PLACE, place, strict=True)) | row
            for place, cells in places.items()
            for row in self._rows(results, cells)
        )
        return pd.DataFrame(rows, columns=FIELDS)

    def _rows(self, results: Results, cells: Mapping[System, matrix.Cell]) -> Iterator[dict[str, Any]]:
        """The rows of one direction and test set."""
        first = next(iter(cells.values()))
        sources = {row["id"]: row["source"] for row in results.testset(first, "source")}
        outputs = {key: hypotheses(results, cell) for key, cell in cells.items()}
        for kind, extract in extractors(first.direction.split("-")[0]).items():
            wanted = {name: items for name, text in sources.items() if (items := extract(text))}
            yield from self._compared(RETENTION, kind, {key: _kept(wanted, texts) for key, texts in outputs.items()})
        if edges := self.buckets.get(first.direction):
            scores = {key: results.sentences(cell, self.metric) for key, cell in cells.items()}
            tokens = tokens_of(results, first)
            ratios = {name: (target + self.eos) / max(1, source) for name, (source, target) in tokens.items()}
            for at, name in enumerate(bucket_names(edges)):
                ids = [one for one in sources if bucket(ratios[one], edges) == at]
                yield from self._compared(BUCKET, name, {key: values.loc[ids] for key, values in scores.items()})

    def _compared(self, block: str, item: str, systems: Mapping[System, pd.Series]) -> Iterator[dict[str, Any]]:
        """A row for each method: its mean over sentences of the mean over runs, and EV's lead over it."""
        runs: dict[str, list[pd.Series]] = {}
        for (name, _), values in systems.items():
            runs.setdefault(name, []).append(values)
        means = {name: sum(values) / len(values) for name, values in runs.items()}
        how = {"resamples": self.statistics.resamples, "bootstrap_seed": self.statistics.seed}
        for name, values in means.items():
            row = {"block": block, "item": item, "sentences": len(values), "runs": len(runs[name]), "method": name}
            row |= {"mean": float(values.mean()), **how}
            if name in RIVALS and len(values):
                test = asdict(paired_test(means[EV], values, self.statistics))
                row |= {key: test[key] for key in BOOTSTRAP}
            yield row

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        sections = []
        for (*place, block), rows in numbers.groupby([*PLACE, "block"], sort=False):
            what = "retention, Δ in pp" if block == RETENTION else f"{self.metric.label} by r"
            sections.append(TableSection(self.groups(rows), f"{self.place(*place)}: {what}"))
        rivals = [name for name in RIVALS if name in set(numbers["method"])]
        deltas = (Column("Δ [95 % CI]", formats.difference(EV, name)) for name in rivals)
        tested = (TESTS, *notes.few_sentences(numbers["sentences"]))
        return Table((*self.heads("Category", rivals), *deltas), sections, (*self.notes(results, numbers), *tested))

    def groups(self, rows: pd.DataFrame, tested: bool = True) -> list[Group]:
        """A row for each item, with EV's leads where they are ``tested``."""
        groups = []
        for (block, item), part in rows.groupby(["block", "item"], sort=False):
            systems = {row.method: row for row in part.itertuples(index=False)}
            label = _item(item)
            if not tested:  # the heading is not that of a block
                of_item = f"{label.removesuffix('s')} retention"
                label = of_item if block == RETENTION else f"{label}: {self.metric.label}"
            groups.append(Group.of(label, self._cells(block, systems, tested)))
        return groups

    def _cells(self, block: str, systems: Mapping[str, Any], tested: bool) -> list[str | TableCell]:
        """N, the values of the fixed ratios and EV, and EV's lead over each of the former; dashes where N is 0."""
        count, rivals = systems[EV].sentences, [name for name in RIVALS if name in systems]
        shown = [systems[name] for name in (*rivals, EV)]
        if not count:
            return ["0", *[formats.NONE] * (len(shown) + tested * len(rivals))]
        means = [row.mean for row in shown]
        top = max(means) if len(set(means)) > 1 else None
        values = [TableCell(self._value(block, mean), bold=mean == top) for mean in means]
        return [str(count), *values, *(self._lead(block, systems[name]) for name in rivals if tested)]

    def _value(self, block: str, mean: float) -> str:
        return formats.percent(mean) if block == RETENTION else formats.number(mean, self.metric.decimals)

    def _lead(self, block: str, test: Any) -> str:
        scale, decimals = (100, 1) if block == RETENTION else (1, self.metric.decimals)
        delta, low, high = (scale * value for value in (test.delta, test.ci_low, test.ci_high))
        return formats.interval(delta, low, high, decimals) + "*" * bool(low > 0)

    def heads(self, first: str, rivals: Sequence[str]) -> list[Column]:
        """The titles of all but EV's leads."""
        systems = (Column(self.method(name).short) for name in (*rivals, EV))
        return [Column(first, align="l"), Column("N", align="r"), *systems]

    def notes(self, results: Results, numbers: pd.DataFrame) -> tuple[str, ...]:
        """Whose outputs these are, and what is counted."""
        runs = int(numbers["runs"].max())
        reference = "the reference and its EOS" if self.eos else "the reference, without its EOS"
        bold = f"Bold: the best. r: tokens of {reference}, over those of the source."
        return (notes.setting(self, counted(runs, "run")), LITERAL, *self._unspaced(results), bold)

    def _unspaced(self, results: Results) -> Iterator[str]:
        """How many sources have digits, where words are not separated by blanks: the rule for numbers finds few."""
        for (direction, testset), cell in {(cell.direction, cell.testset): cell for cell in self.cells}.items():
            if direction.split("-")[0] in UNSPACED:
                sources = [row["source"] for row in results.testset(cell, "source")]
                having = f"{sum(any(map(str.isdigit, text)) for text in sources)} of {len(sources)} sources have digits"
                rule = "the rule that fits the paper's counts finds only those that touch no character"
                yield f"Numbers of {self.place(direction, testset)}: {having}; {rule}."


class FaithfulnessSummary(CoverageTable):
    """The rows of :class:`CoverageTable` that the paper has in its text, of the directions with groups by r."""

    caption = (
        "Retention of placeholders and numbers, and {metric} where references are short or long for their source: a "
        "summary of the table coverage."
    )

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        return [cell for cell in super().cells if cell.direction in self.experiment.coverage.buckets]

    def numbers(self, results: Results) -> pd.DataFrame:
        """Those of the literal items but names, of the last bucket, and of the first one."""
        numbers = super().numbers(results)
        buckets = numbers[numbers["block"] == BUCKET]
        ends = [buckets.groupby(list(PLACE), sort=False)["item"].transform(end) for end in ("last", "first")]
        literal = numbers[(numbers["block"] == RETENTION) & (numbers["item"] != ENTITIES)]
        return pd.concat([literal, *(buckets[buckets["item"] == end] for end in ends)], ignore_index=True)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        sections = [
            TableSection(self.groups(rows, tested=False), self.place(*place))
            for place, rows in numbers.groupby(list(PLACE), sort=False)
        ]
        rivals = [name for name in RIVALS if name in set(numbers["method"])]
        return Table(self.heads("Diagnostic", rivals), sections, self.notes(results, numbers))


def _item(name: str) -> str:
    """A kind of items or a bucket as it is printed: Placeholders, r ≥ 0.8."""
    printed = {PLACEHOLDERS: "Placeholders", NUMBERS: "Numbers", ENTITIES: "Capitalised words"}
    return printed.get(name) or name.replace(">=", " ≥ ").replace("<=", " ≤ ").replace("<", " < ")


# --- The sentences on which EV scores below the fixed ratio, by likely cause.

RUN = (*PLACE, "seed")
CAUSES = ("very_short", "overshoot", "under_compression", "within_grid")
SHORT, OVERSHOOT, UNDER, WITHIN = CAUSES
ALL = "all"
SHORTEST = 3  # tokens of a very short source
LABELS = {
    SHORT: "Very short source",
    OVERSHOOT: "Overshoot beyond grid",
    UNDER: "Under-compression",
    WITHIN: "Within-grid wrong pick",
    ALL: "All losses",
}
RULES = (
    f"The first rule that fits. Very short source: at most {SHORTEST} tokens. Overshoot: the reference's canvas (its "
    "tokens and the EOS) is below EV's smallest candidate. Under-compression: above its largest. Else within the grid."
)


def cause(source_tokens: int, reference_canvas: int, candidates: Sequence[int]) -> str:
    """The first of :data:`CAUSES` that fits a sentence; ``candidates`` are the lengths that EV compared.

    The reference's canvas (its tokens and the EOS) may lie below all candidates, above all, or between them.
    """
    if source_tokens <= SHORTEST:
        return SHORT
    if reference_canvas < min(candidates):
        return OVERSHOOT
    return UNDER if reference_canvas > max(candidates) else WITHIN


class FailureBuckets(OfEvAndRatio):
    """A section for each direction; beside the paper's Ratio that with the slot for the EOS."""

    caption = (
        "Sentences on which EV scores below the fixed ratio in {metric}, by likely cause: how many, which share of "
        "all such sentences, and by how much EV scores less."
    )

    def numbers(self, results: Results) -> pd.DataFrame:
        """By run (``statistic`` "run"), then the mean over runs ("mean", no seed).

        ``losses``: sentences on which EV scores below the ``rival``; ``share`` of all losses; ``delta``: mean of EV
        minus the rival over them in the main metric, NaN where there is none.
        """
        runs = by_run(self.cells, RUN)
        rows = (
            dict(zip(RUN, run, strict=True)) | row for run, cells in runs.items() for row in self._rows(results, cells)
        )
        frame = pd.DataFrame(rows)
        groups = frame.groupby([*PLACE, "rival", "cause"], sort=False)
        means = groups[["sentences", "losses", "share", "delta"]].mean().assign(runs=groups.size()).reset_index()
        whole = pd.concat([frame.assign(statistic="run", runs=1), means.assign(statistic="mean")], ignore_index=True)
        return whole[[*RUN, "statistic", "runs", "sentences", "rival", "cause", "losses", "share", "delta"]]

    def _rows(self, results: Results, cells: Mapping[str, matrix.Cell]) -> Iterator[dict[str, Any]]:
        """The rows of one run."""
        ev = cells[EV]
        scores, causes = results.sentences(ev, self.metric), self._causes(results, ev)
        for rival in (name for name in RIVALS if name in cells):
            delta = scores - results.sentences(cells[rival], self.metric)
            lost = delta[delta < 0]
            for name in (*CAUSES, ALL):
                losses = lost if name == ALL else lost[causes.loc[lost.index] == name]
                share = len(losses) / len(lost) if len(lost) else float("nan")
                numbers = {"losses": len(losses), "share": share, "delta": float(losses.mean())}
                yield {"sentences": len(scores), "rival": rival, "cause": name, **numbers}

    def _causes(self, results: Results, ev: matrix.Cell) -> pd.Series:
        """The cause that each sentence has if EV loses on it, by id."""
        candidates = {row["id"]: row["candidates"] for row in results.canvases(ev, "candidates")}
        tokens = tokens_of(results, ev).items()
        return pd.Series({name: cause(x, y + 1, candidates[name]) for name, (x, y) in tokens}, dtype=object)

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        means = numbers[numbers["statistic"] == "mean"]
        rivals = [name for name in RIVALS if name in set(means["rival"])]
        sections = []
        for place, rows in means.groupby(list(PLACE), sort=False):
            groups = []
            for of, part in rows.groupby("cause", sort=False):
                texts = (text for row in part.itertuples(index=False) for text in self._texts(row))
                groups.append(Group.of(LABELS[str(of)], (TableCell(text, bold=of == ALL) for text in texts)))
            heading = f"{self.place(*place)}, N = {rows['sentences'].iloc[0]:.0f}"
            sections.append(TableSection(groups, heading))
        titles = ("Losses", "Share", f"Mean Δ {self.metric.label}")
        over = (Column(title, f"Against {self.method(name).short}") for name in rivals for title in titles)
        runs = means["runs"].max()
        counted = f"means over {runs} runs, each run by itself is in the CSV" if runs > 1 else "one run"
        return Table((Column("Likely cause", align="l"), *over), sections, (notes.setting(self, counted), RULES))

    def _texts(self, row: Any) -> list[str]:
        """Losses, share and mean difference; a mean over runs of whole numbers has a decimal."""
        count = f"{row.losses:.{int(row.runs > 1)}f}"
        if not row.losses:
            return [count, formats.NONE, formats.NONE]
        return [count, formats.percent(row.share), formats.signed(row.delta, self.metric.decimals)]

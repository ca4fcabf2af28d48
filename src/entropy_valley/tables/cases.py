"""Three sentences that show what the canvas decides, chosen by rule or by the config: a table and a figure."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from entropy_valley.config import matrix
from entropy_valley.errors import InputError, listed
from entropy_valley.results import REMEDY, TRANSLATIONS
from entropy_valley.scoring.metrics import Metric
from entropy_valley.tables import formats
from entropy_valley.tables.base import FigureReport, Report, TableReport
from entropy_valley.tables.coverage import EXTRACTORS, NUMBERS, PLACEHOLDERS, retention
from entropy_valley.tables.reader import Results, testset_file
from entropy_valley.tables.render import Column, Group, Table, TableSection
from entropy_valley.tables.style import METHOD_COLOURS, METHOD_MARKERS, RC
from entropy_valley.texts import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
METHODS = ("ratio", "ev", "oracle")
WIN, KEPT, BEYOND = "largest win", "largest win in what is kept", "largest loss beyond the grid"
RUN = ("backbone", "direction", "testset", "seed")
SYSTEM = [f"{method}_{key}" for method in METHODS for key in ("slots", "output", "score")]
FIELDS = [*RUN, "case", "id", "source", "reference", *SYSTEM, "delta"]
FIELDS += ["items", "ratio_kept", "ev_kept", "candidates", "entropies"]
Sentence = Mapping[str, Any]
# For each case: which sentences count, and what is the largest of the one that is taken.
RULES: Mapping[str, tuple[Callable[[Sentence], bool], Callable[[Sentence], Any]]] = {
    WIN: (lambda one: one["delta"] > 0, lambda one: one["delta"]),
    KEPT: (lambda one: one["more_kept"] > 0, lambda one: (one["more_kept"], one["delta"])),
    BEYOND: (lambda one: one["beyond"] and one["delta"] < 0, lambda one: -one["delta"]),
}
HEADINGS = {
    WIN: "Largest win of EV over Ratio",
    KEPT: "Largest win of EV in what it keeps of the source",
    BEYOND: "Largest loss of EV with a reference beyond its grid",
}
CHOSEN = (
    "Chosen by rule among the sentences of one run, none twice. First: the largest lead of EV over Ratio in {metric}. "
    "Second: the largest lead in the share of the source's placeholders that the output has (of its numbers, in a test "
    "set without placeholders); among equal ones the largest in {metric}. Third: the largest loss of a sentence whose "
    "reference has a shorter or a longer canvas than all candidates of EV."
)
WIDTH, LINE = 6.3, 0.15  # inches: the figure, and from line to line
TEXT, SCORE, CURVE = 1.25, 4.2, 4.9  # inches from the left: texts begin, scores end, curves begin
COLUMNS, LINES = 38, 3  # Latin letters in a line of a text, and its most lines
SIZE = 7.5  # points
FEWEST = 8  # lines of a case, for its curve
# Fonts with Chinese characters, of Linux, macOS and Windows; behind the figures' own font, which has none.
CHINESE = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei", "SimHei")
LEFT_OUT = "(Chinese text, left out)"
NO_FONT = (  # below the figure
    "Chinese texts are left out: this machine has no Chinese font. The table cases has them.",
    f"Install one (Debian: apt-get install fonts-noto-cjk; elsewhere {CHINESE[0]}) and make the figure again.",
)
_WIDE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"  # Chinese characters and punctuation
_CLOSING = "，。、；：？！」』）》”’"  # begin no line


class _CaseLine(NamedTuple):
    """What a case says of one text; NaN where there is no such number."""

    label: str
    text: str
    slots: float = nan
    score: float = nan
    kept: float = nan


class _Cases(Report):
    """What table and figure share: the main backbone's first run of its first direction and test set."""

    texts, bleu = True, False
    reads = (testset_file,)
    recorded = ("named",)

    @functools.cached_property
    def cells(self) -> list[matrix.Cell]:
        cells = [cell for cell in self.main_cells if cell.method in METHODS]
        return [cell for cell in cells if (cell.run, cell.testset) == (cells[0].run, cells[0].testset)]

    @property
    def named(self) -> list[str]:
        """The ids of the config's own choice; none: the rules choose."""
        return self.experiment.tables.cases

    @property
    def choice(self) -> str:
        """How the sentences were chosen."""
        return "Chosen by the config." if self.named else CHOSEN.replace("{metric}", self.metric.label)

    def numbers(self, results: Results) -> pd.DataFrame:
        return cases(results, self.cells, self.metric, self.named)

    def heading(self, case: Any) -> str:
        lead = f"{formats.signed(case.delta, self.metric.decimals)} {self.metric.label}"
        return f"{HEADINGS.get(case.case, 'EV − Ratio')}: {lead} ({case.id})"


class Cases(_Cases, TableReport):
    """A section for each case: texts, canvases, scores, and EV's entropies."""

    caption = "Single sentences: canvases, outputs, {metric}, and the entropies by which EV chose."

    def table(self, results: Results, numbers: pd.DataFrame) -> Table:
        heads = (Column("", align="l"), Column("Text", align="l"))
        columns = (*heads, *(Column(title, align="r") for title in ("Slots", self.metric.label, "Kept")))
        sections = [TableSection(list(self._groups(case)), self.heading(case)) for case in numbers.itertuples()]
        return Table(columns, sections, (*self._notes(numbers), *_absent(numbers)))

    def _groups(self, case: Any) -> Iterator[Group]:
        for line in _lines(case):
            score = formats.number(line.score, self.metric.decimals)
            numbers = ((line.slots, f"{line.slots:.0f}"), (line.score, score), (line.kept, f"{100 * line.kept:.0f}%"))
            texts = [formats.NONE if isnan(value) else text for value, text in numbers]
            yield Group.of(line.label, [line.text, *texts], shaded=line.label == "EV")
        entropies = ", ".join(f"{slots}: {entropy:.3f}" for slots, entropy in zip(*curve(case), strict=True))
        yield Group.of("Entropy", [entropies, *[formats.NONE] * 3])

    def _notes(self, numbers: pd.DataFrame) -> list[str]:
        cell = self.cells[0]
        run = f"{self.backbone(cell.backbone)}, {self.place(cell.direction, cell.testset)}"
        return [
            f"{run}, training seed {cell.seed}; reveal order {self.order(cell.order)}, T = {cell.steps}.",
            self.choice,
            "Slots: of the canvas; those of the reference are its tokens and the EOS.",
            *(f"Kept: share of the source's {item}s that the output has." for item in numbers["items"].unique()),
            "Entropy: mean of the all-mask canvas of each candidate, in nats; EV takes the lowest.",
        ]


class CasesFigure(_Cases, FigureReport):
    """A block for each case: the texts, and beside them EV's entropies by candidate."""

    caption = (
        "Single sentences: canvases of L slots, outputs, their {metric}, and the mean entropy (nats) of EV's "
        "candidates; the large point is its choice, and lines are at the canvas of Ratio (dashed) and the reference's "
        "(dotted). Long texts are cut; the table has them whole."
    )
    width = WIDTH

    @property
    def text(self) -> str:
        return f"{super().text} {self.choice}"

    def panel_height(self, numbers: pd.DataFrame) -> float:
        heights = [_height(case) for case in numbers.itertuples()]
        return LINE * (sum(heights) + len(_below(numbers)) + 0.5)

    def draw(self, numbers: pd.DataFrame, axes: Axes) -> None:
        cases, below = list(numbers.itertuples()), _below(numbers)
        if NO_FONT[0] in below:
            sys.stderr.write("figure cases: " + " ".join(NO_FONT) + "\n")
        axes.set_axis_off()
        axes.set(xlim=(0, WIDTH), ylim=(-self.panel_height(numbers) / LINE, 0))  # lines, upwards
        top = 0.0
        for case in cases:
            self._texts(axes, case, top)
            _curve(axes, case, top, last=case is cases[-1])
            top -= _height(case)
        for text in below:
            top -= 1
            axes.text(0, top, text)

    def _texts(self, axes: Axes, case: Any, top: float) -> None:
        """The heading of a case and its texts, with slots and scores."""
        families = [RC["font.family"], *chinese_fonts()]
        axes.text(0, top - 1, self.heading(case), fontweight="bold")
        y = top - 2.2
        for line in _lines(case):
            if has_canvas := not isnan(line.slots):
                name = {"Reference": "oracle"}.get(line.label, line.label.lower())
                axes.plot(0.05, y + 0.25, METHOD_MARKERS[name], color=METHOD_COLOURS[name], markersize=4)
            axes.text(0.14, y, f"{line.label}, L = {line.slots:.0f}" if has_canvas else line.label, fontsize=SIZE)
            if line.label == "Source":
                axes.text(SCORE, y, self.metric.label, ha="right", fontsize=SIZE)  # over the scores
            elif not isnan(line.score):
                text = formats.number(line.score, self.metric.decimals)
                axes.text(SCORE, y, text, ha="right", fontsize=SIZE)
            for text in [LEFT_OUT] if _is_left_out(line.text) else wrapped(line.text):
                axes.text(TEXT, y, text, fontsize=SIZE, fontfamily=families)
                y -= 1


# --- The numbers.


def cases(results: Results, cells: Sequence[matrix.Cell], metric: Metric, named: Sequence[str] = ()) -> pd.DataFrame:
    """A row for each of :data:`RULES` that the run has a sentence for, or for each ``named`` id: :data:`FIELDS`.

    Of each method the ``…_slots`` of its canvas, its ``…_output`` and ``…_score``; ``delta``, EV's score minus Ratio's;
    ``items``, the kind whose retention is looked at (placeholder; number in a test set without any), and the share
    of the source's that ``ratio_kept`` and ``ev_kept``, NaN where it has none; ``candidates``, the slots that EV
    compared, and their mean ``entropies`` in nats, as text. No sentence comes twice; of equal ones the first is taken.
    The ``case`` of a named one is its id. Raises :class:`InputError` for an id that the test set has not.
    """
    run = {key: getattr(cells[0], key) for key in RUN}
    sentences = list(_sentences(results, cells, metric))
    by_id = {one["id"]: one for one in sentences}
    if missing := [name for name in named if name not in by_id]:
        problem = f"{listed(missing)}: no such sentence in {cells[0].testset}"
        raise InputError("tables.cases", problem, f"Take ids of {results.testset_path(cells[0])}.")
    taken = [(name, by_id[name]) for name in dict.fromkeys(named)] or chosen(sentences)
    return pd.DataFrame((run | {"case": case} | dict(one) for case, one in taken), columns=FIELDS)


def curve(case: Any) -> tuple[list[int], list[float]]:
    """Candidates and entropies of a row of :func:`cases`."""
    return [*map(int, case.candidates.split())], [*map(float, case.entropies.split())]


def chosen(sentences: Sequence[Sentence]) -> Iterator[tuple[str, Sentence]]:
    """The cases in their order, each with its sentence; a sentence has all that :data:`RULES` ask for."""
    taken: list[Sentence] = []
    for case, (counts, size) in RULES.items():
        fitting = [one for one in sentences if counts(one) and one not in taken]
        if fitting:
            taken.append(max(fitting, key=size))
            yield case, taken[-1]


def _sentences(results: Results, cells: Sequence[matrix.Cell], metric: Metric) -> Iterator[Sentence]:
    """Of each sentence, in the file's order, :data:`FIELDS` and what the rules ask for.

    ``more_kept``: EV's lead in the share that is kept; ``beyond``: the reference's canvas is shorter or longer than all
    candidates.
    """
    testset, systems = results.testset(cells[0], "source", "target"), {cell.method: cell for cell in cells}
    outputs = {
        method: {row["id"]: row["hypothesis"] for row in results.translations(cell)} for method, cell in systems.items()
    }
    scores = {method: results.sentences(cell, metric) for method, cell in systems.items()}
    canvases = {
        method: {row["id"]: row for row in results.canvases(cell, "length", "candidates", "scores")}
        for method, cell in systems.items()
    }
    kind = PLACEHOLDERS if any(EXTRACTORS[PLACEHOLDERS](row["source"]) for row in testset) else NUMBERS
    for row in testset:
        name, items = row["id"], EXTRACTORS[kind](row["source"])
        one: dict[str, Any] = {"id": name, "source": row["source"], "reference": row["target"], "items": kind}
        for method in METHODS:
            output = outputs[method][name]
            one |= {f"{method}_slots": canvases[method][name]["length"], f"{method}_output": output}
            one |= {f"{method}_score": float(scores[method][name])}
            one |= {f"{method}_kept": retention(items, output) if items else nan}
        candidates, entropies = canvases["ev"][name]["candidates"], canvases["ev"][name]["scores"]
        if not len(candidates) == len(entropies) > 0:
            problem = f"sentence {name!r} has {len(entropies)} entropies of {len(candidates)} candidates"
            raise InputError(results.place(systems["ev"], TRANSLATIONS), problem, REMEDY)
        yield one | {
            "delta": one["ev_score"] - one["ratio_score"],
            "candidates": " ".join(map("{:g}".format, candidates)),
            "entropies": " ".join(map("{:g}".format, entropies)),
            "more_kept": one["ev_kept"] - one["ratio_kept"],
            "beyond": not min(candidates) <= one["oracle_slots"] <= max(candidates),
        }


# --- The layout.


def _absent(numbers: pd.DataFrame) -> list[str]:
    """What is said of the rules that the run has no sentence for."""
    shown = set(numbers["case"])
    if shown - set(RULES):  # the config has named them
        return []
    return [f"{HEADINGS[case]}: there is no such sentence." for case in RULES if case not in shown]


def _lines(case: Any) -> list[_CaseLine]:
    """The texts of a case."""
    return [
        _CaseLine("Source", case.source),
        _CaseLine("Reference", case.reference, case.oracle_slots),
        _CaseLine("Ratio", case.ratio_output, case.ratio_slots, case.ratio_score, case.ratio_kept),
        _CaseLine("EV", case.ev_output, case.ev_slots, case.ev_score, case.ev_kept),
    ]


def wrapped(text: str, columns: int = COLUMNS, lines: int = LINES) -> list[str]:
    """A text in the lines of the figure, of so many Latin letters; Chinese may break anywhere, and is twice as wide.

    What is left is cut.
    """
    broken, room = [""], columns
    for piece in re.findall(rf"(?:{_WIDE}|(?:(?!{_WIDE})\S){{1,{columns}}})[{_CLOSING}]*\s*", shown(text).strip()):
        width = sum(2 if re.match(_WIDE, character) else 1 for character in piece.rstrip())
        if width > room and broken[-1]:
            broken, room = [*broken, ""], columns
        broken[-1] += piece
        room -= width + len(piece) - len(piece.rstrip())
    kept = [line.rstrip() for line in broken[:lines]]
    return kept if len(broken) <= lines else [*kept[:-1], f"{kept[-1][: columns - 1]}…"]


def _height(case: Any) -> int:
    """The lines of a case in the figure, with its heading and the space below."""
    return max(FEWEST, 2 + sum(len(wrapped(line.text)) for line in _lines(case)))


def _below(numbers: pd.DataFrame) -> list[str]:
    """The lines below the cases: which there are not, and what to install where a text of theirs has no font."""
    texts = (line.text for case in numbers.itertuples() for line in _lines(case))
    return [*_absent(numbers), *(NO_FONT if any(map(_is_left_out, texts)) else ())]


def _is_left_out(text: str) -> bool:
    return bool(re.search(_WIDE, text)) and not chinese_fonts()


def chinese_fonts() -> list[str]:
    """Those of :data:`CHINESE` that matplotlib finds. It keeps a list of fonts in a file; where none is in this list,
    fonts that were installed later are added."""

    from matplotlib import font_manager

    manager = font_manager.fontManager
    if not {*CHINESE} & {*font_manager.get_font_names()}:
        listed = {font.fname for font in manager.ttflist}
        for path in {*font_manager.findSystemFonts()} - listed:
            with contextlib.suppress(OSError, RuntimeError):  # no font that matplotlib can read
                manager.addfont(path)
    installed = {*font_manager.get_font_names()}
    return [name for name in CHINESE if name in installed]


def _curve(axes: Axes, case: Any, top: float, last: bool) -> None:
    """Mean entropy of EV's candidates; vertical lines at the canvases of Ratio and the reference."""

    from matplotlib import ticker

    box = (CURVE, top - FEWEST + 2.2, WIDTH - CURVE, FEWEST - 3.6)
    inset = axes.inset_axes(box, transform=axes.transData)
    slots, entropies = curve(case)
    inset.axvline(case.ratio_slots, color=METHOD_COLOURS["ratio"], linestyle="--")
    inset.axvline(case.oracle_slots, color=METHOD_COLOURS["oracle"], linestyle=":")
    inset.plot(slots, entropies, color=METHOD_COLOURS["ev"], marker=METHOD_MARKERS["ev"], markersize=3)
    inset.plot(case.ev_slots, entropies[slots.index(case.ev_slots)], METHOD_MARKERS["ev"], color=METHOD_COLOURS["ev"])
    inset.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
    inset.tick_params(labelsize=SIZE)
    inset.set_ylabel("entropy\n(nats)", fontsize=SIZE)
    inset.margins(x=0.1, y=0.2)
    if last:
        inset.set_xlabel("slots", fontsize=SIZE)

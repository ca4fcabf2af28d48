"""Three sentences that show what the canvas decides, chosen by rule or by the config: a table and a figure."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from entropy_valley.errors import InputError, listed
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import Cell
from entropy_valley.experiment.frames import PLACE, further_file
from entropy_valley.experiment.tables import formats
from entropy_valley.experiment.tables.coverage import EXTRACTORS, NUMBERS, PLACEHOLDERS, retention
from entropy_valley.experiment.tables.formats import RISING
from entropy_valley.experiment.tables.report import Data, Figure, Names, Row, Shown, aligned, figure, table
from entropy_valley.experiment.tables.scores import main_cells
from entropy_valley.experiment.tables.style import FONT, METHOD_COLOURS, METHOD_MARKERS
from entropy_valley.texts import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIN, KEPT, BEYOND = "largest win", "largest win in what is kept", "largest loss beyond the grid"
FIELDS = ["backbone", *PLACE, "seed", "case", "id", "source", "reference"]
FIELDS += [f"{method}_{key}" for method in RISING for key in ("slots", "output", "score")]
FIELDS += ["delta", "items", "ratio_kept", "ev_kept", "candidates", "entropies"]
# For each case: which sentences count, and what is the largest of the one that is taken.
RULES = {
    WIN: ("delta > 0", ["delta"]),
    KEPT: ("more_kept > 0", ["more_kept", "delta"]),
    BEYOND: ("beyond and delta < 0", ["loss"]),
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
# Fonts with Chinese characters, of Linux, macOS and Windows; behind the figures' own font, which has none. On a machine
# without any, matplotlib warns and prints boxes.
CHINESE = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei", "SimHei")
_WIDE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"  # Chinese characters and punctuation
_CLOSING = "，。、；：？！」』）》”’"  # begin no line
_PIECE = rf"(?![{_CLOSING}]){_WIDE}[{_CLOSING}]*"


def first_run(experiment: Experiment) -> list[Cell]:
    """The main backbone's first run of its first direction and test set."""
    cells = [cell for cell in main_cells(experiment) if cell.method in RISING]
    return [cell for cell in cells if (cell.run, cell.testset) == (cells[0].run, cells[0].testset)]


# --- The numbers.


def case_numbers(data: Data) -> pd.DataFrame:
    """A row for each of :data:`RULES` that the run has a sentence for, or for each id that the config names:
    :data:`FIELDS`.

    Of each method the ``…_slots`` of its canvas, its ``…_output`` and ``…_score``; ``delta``, EV's score minus Ratio's;
    ``items``, the kind whose retention is looked at (placeholder; number in a test set without any), and the share
    of the source's that ``ratio_kept`` and ``ev_kept``, NaN where it has none; ``candidates``, the slots that EV
    compared, and their mean ``entropies`` in nats, as text. No sentence comes twice; of equal ones the first is taken.
    The ``case`` of a named one is its id. Raises :class:`InputError` for an id that the test set has not.
    """
    cell, named = data.listed[0], data.experiment.tables.cases
    run = {key: getattr(cell, key) for key in ("backbone", *PLACE, "seed")}
    sentences = facts_of_sentences(data)
    if missing := [name for name in named if name not in sentences.index]:
        problem = f"{listed(missing)}: no such sentence in {cell.testset}"
        raise InputError("tables.cases", problem, f"Take ids of {further_file(data.files.root, 'test set', cell)}.")
    # What the config names is shown once, however often it is named.
    taken = {name: name for name in named} or chosen(sentences)
    table = sentences.loc[[*taken.values()]].rename_axis("id").reset_index().assign(case=[*taken], **run)
    return table[FIELDS]


def curve(case: Any) -> tuple[list[int], list[float]]:
    """Candidates and entropies of a row of :func:`case_numbers`."""
    return [*map(int, case.candidates.split())], [*map(float, case.entropies.split())]


def chosen(sentences: pd.DataFrame) -> dict[str, Any]:
    """The cases in their order, each with its sentence; the frame has all that :data:`RULES` ask for."""
    taken: dict[str, Any] = {}
    for case, (counts, size) in RULES.items():
        # A sentence is shown once, by the first rule that takes it.
        fitting = sentences.drop(index=[*taken.values()]).query(counts)
        if len(fitting):
            taken[case] = fitting.sort_values(size, ascending=False, kind="stable").index[0]
    return taken


def facts_of_sentences(data: Data) -> pd.DataFrame:
    """Of each sentence, by its id and in the file's order, :data:`FIELDS` and what the rules ask for.

    ``more_kept``: EV's lead in the share that is kept; ``loss``: Ratio's lead; ``beyond``: the reference's canvas is
    shorter or longer than all candidates.
    """
    of_method = {name: rows.set_index("id") for name, rows in data.sentences.groupby("method")}
    ev = of_method["ev"]
    # One kind for all sentences, so that their shares compare.
    kind = PLACEHOLDERS if any(map(EXTRACTORS[PLACEHOLDERS], ev["source"])) else NUMBERS
    items = ev["source"].map(EXTRACTORS[kind])
    table = pd.DataFrame({"source": ev["source"], "reference": ev["target"], "items": kind})
    for method in RISING:
        rows = of_method[method]
        table[f"{method}_slots"] = rows["canvas"].str["length"]
        table[f"{method}_output"], table[f"{method}_score"] = rows["hypothesis"], rows[data.metric.name]
        pairs = zip(items, rows["hypothesis"], strict=True)
        table[f"{method}_kept"] = [retention(found, output) if found else nan for found, output in pairs]
    for column, key in (("candidates", "candidates"), ("entropies", "scores")):
        table[column] = [" ".join(map("{:g}".format, canvas[key])) for canvas in ev["canvas"]]
    # Beyond the grid: EV could not have taken this canvas.
    candidates = ev["canvas"].str["candidates"]
    table["beyond"] = ~table["oracle_slots"].between(candidates.map(min), candidates.map(max))
    table["delta"] = table["ev_score"] - table["ratio_score"]
    table["loss"] = -table["delta"]
    return table.assign(more_kept=table["ev_kept"] - table["ratio_kept"])


# --- What table and figure say of a case.


class _Line(NamedTuple):
    """What a case says of one text; NaN where there is no such number."""

    label: str
    text: str
    slots: float = nan
    score: float = nan
    kept: float = nan


def _lines(case: Any) -> list[_Line]:
    return [
        _Line("Source", case.source),
        _Line("Reference", case.reference, case.oracle_slots),
        _Line("Ratio", case.ratio_output, case.ratio_slots, case.ratio_score, case.ratio_kept),
        _Line("EV", case.ev_output, case.ev_slots, case.ev_score, case.ev_kept),
    ]


def heading(names: Names, case: Any) -> str:
    lead = f"{formats.signed(case.delta, names.metric.decimals)} {names.metric.label}"
    return f"{HEADINGS.get(case.case, 'EV − Ratio')}: {lead} ({case.id})"


def choice(names: Names) -> str:
    """How the sentences were chosen."""
    named = names.experiment.tables.cases
    return "Chosen by the config." if named else CHOSEN.replace("{metric}", names.metric.label)


def absent(numbers: pd.DataFrame) -> list[str]:
    """What is said of the rules that the run has no sentence for."""
    present = set(numbers["case"])
    if present - set(RULES):  # the config has named them
        return []
    return [f"{HEADINGS[case]}: there is no such sentence." for case in RULES if case not in present]


# --- The table.

READ = ("hypothesis", "source", "target", "canvas")


@table(
    "Single sentences: canvases, outputs, {metric}, and the entropies by which EV chose.",
    first_run,
    columns=READ,
    metrics=Names.only_main,
)
def cases(data: Data) -> Shown:
    """A section for each case: texts, canvases, scores, and EV's entropies."""
    numbers = case_numbers(data)
    columns = aligned("l", "", "Text") + aligned("r", "Slots", data.metric.label, "Kept")
    rows = []
    for case in numbers.itertuples():
        section = heading(data, case)
        for line in _lines(case):
            texts = [
                formats.dash(formats.number(line.slots, 0)),
                formats.dash(formats.number(line.score, data.metric.decimals)),
                formats.NONE if isnan(line.kept) else f"{100 * line.kept:.0f}%",
            ]
            rows.append(Row([line.label, line.text, *texts], section, shaded=line.label == "EV"))
        entropies = ", ".join(f"{slots}: {entropy:.3f}" for slots, entropy in zip(*curve(case), strict=True))
        rows.append(Row(["Entropy", entropies, *[formats.NONE] * 3], section))
    cell = data.listed[0]
    run = f"{data.backbone(cell.backbone)}, {data.place(cell.direction, cell.testset)}"
    notes = [
        f"{run}, training seed {cell.seed}; reveal order {data.order(cell.order)}, T = {cell.steps}.",
        choice(data),
        "Slots: of the canvas; those of the reference are its tokens and the EOS.",
        *(f"Kept: share of the source's {item}s that the output has." for item in numbers["items"].unique()),
        "Entropy: mean of the all-mask canvas of each candidate, in nats; EV takes the lowest.",
    ]
    return Shown(numbers, columns, rows, [*notes, *absent(numbers)])


# --- The figure.


@figure(
    lambda names: (
        "Single sentences: canvases of L slots, outputs, their {metric}, and the mean entropy (nats) of EV's "
        "candidates; the large point is its choice, and lines are at the canvas of Ratio (dashed) and the reference's "
        "(dotted). "
        f"Long texts are cut; the table has them whole. {choice(names)}"
    ),
    first_run,
    columns=READ,
)
def cases_figure(data: Data) -> Figure:
    """A block for each case: the texts, and beside them EV's entropies by candidate."""
    numbers = case_numbers(data)
    below = absent(numbers)
    lines = sum(_height(case) for case in numbers.itertuples()) + len(below) + 0.5
    panel = functools.partial(_draw, data, list(numbers.itertuples()), below, lines)
    return Figure(numbers, [panel], width=WIDTH, height=LINE * lines)


def _draw(names: Names, shown_cases: Sequence[Any], below: Sequence[str], lines: float, axes: Axes) -> None:
    axes.set_axis_off()
    axes.set(xlim=(0, WIDTH), ylim=(-lines, 0))  # lines, upwards
    top = 0.0
    for case in shown_cases:
        _texts(names, axes, case, top)
        _curve(axes, case, top, last=case is shown_cases[-1])
        top -= _height(case)
    for text in below:
        top -= 1
        axes.text(0, top, text)


def _texts(names: Names, axes: Axes, case: Any, top: float) -> None:
    """The heading of a case and its texts, with slots and scores."""
    from matplotlib import font_manager

    installed = font_manager.get_font_names()
    families = [FONT, *(name for name in CHINESE if name in installed)]
    axes.text(0, top - 1, heading(names, case), fontweight="bold")
    y = top - 2.2
    for line in _lines(case):
        if has_canvas := not isnan(line.slots):
            name = {"Reference": "oracle"}.get(line.label, line.label.lower())
            axes.plot(0.05, y + 0.25, METHOD_MARKERS[name], color=METHOD_COLOURS[name], markersize=4)
        axes.text(0.14, y, f"{line.label}, L = {line.slots:.0f}" if has_canvas else line.label, fontsize=SIZE)
        score = "" if isnan(line.score) else formats.number(line.score, names.metric.decimals)
        # The first line, which has no score, has the name of all.
        axes.text(SCORE, y, names.metric.label if line.label == "Source" else score, ha="right", fontsize=SIZE)
        for text in wrapped(line.text):
            axes.text(TEXT, y, text, fontsize=SIZE, fontfamily=families)
            y -= 1


def wrapped(text: str, columns: int = COLUMNS, lines: int = LINES) -> list[str]:
    """A text in the lines of the figure, of so many Latin letters; Chinese may break anywhere, and is twice as wide.

    What is left is cut.
    """
    # A blank before each Chinese character, which is removed again, is where it may break, and makes up for its width.
    spaced = re.sub(_PIECE, lambda piece: "\v" * len(piece[0]) + piece[0], shown(text))
    broken = textwrap.wrap(
        spaced, columns, max_lines=lines, placeholder="…", replace_whitespace=False, break_on_hyphens=False
    )
    return [line.replace("\v", "") for line in broken] or [""]


def _height(case: Any) -> int:
    """The lines of a case in the figure, with its heading and the space below."""
    return max(FEWEST, 2 + sum(len(wrapped(line.text)) for line in _lines(case)))


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

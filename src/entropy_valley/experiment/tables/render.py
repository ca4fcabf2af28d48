"""How a table is written: as CSV, Markdown, HTML and LaTeX. Its texts are plain Unicode, which each writer escapes."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from entropy_valley import files
from entropy_valley.experiment.tables.show import Bold, Column, Row, Shown
from entropy_valley.texts import all_shown, guarded, shown

# --- CSV and Markdown.

# Backslash, column, emphasis, code, formula, HTML, entity, link: only where they would be more than the character.
_MARKS = re.compile(r"[\\|*`$]|(?<!\w)_|_(?!\w)|~(?=~)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|\](?=[(\[:])")


def write_csv(path: Path, tidy: pd.DataFrame) -> None:
    """Write a tidy frame with ten significant digits; what is not available is empty, and no text is a formula."""
    safe = {}
    for name in tidy.select_dtypes("object"):
        texts = {text: _safe(text) for text in {value for value in tidy[name] if isinstance(value, str)}}
        values = [texts[value] if isinstance(value, str) else value for value in tidy[name]]
        safe[name] = pd.Series(values, tidy.index, object)
    files.write_text(path, tidy.assign(**safe).to_csv(index=False, float_format="%.10g"))


def _safe(value: str) -> str:
    """A text of a CSV file: one that is not a number is guarded; its lines end with LF, as those of the file."""
    if re.fullmatch(r"[+-][\d.,]+%?", value):
        return value
    return re.sub(r"\r\n?", "\n", guarded(value))


def to_markdown(table: Shown) -> str:
    """A GitHub table, a heading in a row of its own, then the footnote; each text on one line."""
    titles = [": ".join(filter(None, (column.over, column.title))) for column in table.columns]
    rules = [{"l": ":--", "c": ":-:", "r": "--:"}[column.align] for column in table.columns]
    lines = [_markdown_row(titles), f"| {' | '.join(rules)} |"]
    for heading, groups in table.sections:
        if heading:
            lines.append(_markdown_row([Bold(heading), *[""] * (len(titles) - 1)]))
        lines += [_markdown_row(row.texts) for group in groups for row in group]
    notes = [*map(_paragraph, table.open_notes)]
    folded = [*map(_paragraph, table.folded_notes)]
    folded += [f"{_paragraph(name)} {_code(text)}" for name, text in table.signatures]
    if folded:
        notes += ["<details><summary>Further notes, and how this was made</summary>", *folded, "</details>"]
    return "\n".join(all_shown(lines)) + "\n\n" + "\n\n".join(all_shown(notes)) + "\n"


def _markdown_row(texts: Sequence[str]) -> str:
    cells = (f"**{_markdown(text)}**" if isinstance(text, Bold) else _markdown(text) for text in texts)
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    """What Markdown would read as a mark, a link, HTML or a formula stays text."""
    return _MARKS.sub(r"\\\g<0>", text)


def _paragraph(text: str) -> str:
    """The text as a paragraph: no heading, quotation or list, whatever it begins with."""
    return re.sub(r"^(\d*)([#>+=-]|[.)](?= |$))", r"\1\\\2", _markdown(text).strip())


def _code(text: str) -> str:
    """The text as code, between more backticks than it has."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " * (text[:1] == "`" or text[-1:] == "`")
    return f"{fence}{blank}{text}{blank}{fence}"


# --- Pages for a browser, each one file that needs no other: a table, the matrix, the sentences of a test set.

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {"shown": shown, "all_shown": all_shown}
TEMPLATES.tests["bold"] = lambda text: isinstance(text, Bold)
TEMPLATES.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # Chinese takes half the bytes


def write_page(path: str | Path, name: str, title: str, data: Any) -> None:
    """Write the page of the template ``name``: texts in ``data``, a JSON value, are never read as HTML."""
    files.write_text(path, TEMPLATES.get_template(f"{name}.html").render(title=title, data=data))


# --- A table as a page of HTML that needs no other file.

TITLES = {  # of tables and figures whose names say little
    "hero": "The results at a glance",
    "method": "The method",
    "main": "Main results",
    "crossbb": "Results by backbone",
    "crossbb_bleu": "Results by backbone, in BLEU",
    "matrix": "All orders and step budgets",
    "full_significance": "Significance tests",
    "ar_reference": "Autoregressive reference",
    "dream_instruct": "Dream-Instruct",
    "cases": "Three sentences",
    "selector_checks": "Checks of EV's choices",
    "selector_comparison": "Length methods",
    "ev_fit": "EV fit",
    "ev_fit_pooled": "EV fit, all runs",
    "corpus": "Training pairs",
    "dissociation": "Length errors and leads",
    "entropy_valley": "The entropy valley",
    "pareto": "Scores by step budget",
    "full_pareto": "Step budgets",
    "hyperparams": "Hyperparameters",
    "order_sweep_summary": "Reveal orders",
    "negative_order": "SIG-first by category",
    "multi_candidate": "Several candidates decoded",
    "human_eval": "Human evaluation",
    "human_eval_details": "Human evaluation, in detail",
    "fwdcount_control": "Control of forward passes",
    "defr_transfer": "Transfer to De→Fr",
    "eos_padding": "EOS padding",
    "paper_comparison": "The paper's numbers and those of this config",
}


def page(title: str, table: Shown, caption: str = "") -> str:
    """The whole page: title, the table's notes, links to its sections, and the table.

    With a ``caption``, that stands above the table, and the notes below.
    """
    return TEMPLATES.get_template("table.html").render(title=title, table=table, caption=caption)


def title(name: str) -> str:
    """The title of a table or figure, from the name of its file."""
    return TITLES.get(name) or f"{name[:1].upper()}{name[1:].replace('_', ' ')}"


# --- A table in LaTeX, bare or as a float, by a template; and plain text as LaTeX for pdflatex's own fonts.

LATEX_PACKAGES = ("booktabs", "multirow", "colortbl", "adjustbox", "tabulary")  # what every table needs
CHINESE = "CJKutf8"
OPTIONAL = {CHINESE: "CJK", "longtable": "longtable", "pdflscape": "landscape"}  # and what some need, by environment
FONT = "gbsn"  # the Chinese font, of Debian's latex-cjk-chinese and of TeX Live's collection-langchinese
LONG = 40  # characters: a column with a longer line is one of text, whose lines tabulary breaks

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "|": r"\textbar{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "*": "{*}", "[": "{[}",  # the last two: a \\ before them would take them as its argument
    "→": r"$\to$", "±": r"$\pm$", "−": r"$-$", "×": r"$\times$", "·": r"$\cdot$", "≤": r"$\leq$", "≥": r"$\geq$",
    "≈": r"$\approx$", "≠": r"$\neq$", "∞": r"$\infty$", "∈": r"$\in$", "←": r"$\gets$", "↔": r"$\leftrightarrow$",
    "⌊": r"$\lfloor$", "⌋": r"$\rfloor$", "⌈": r"$\lceil$", "⌉": r"$\rceil$", "√": r"$\surd$",
    "µ": r"$\mu$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "°": r"$^{\circ}$",
    "²": "$^{2}$", "³": "$^{3}$", "½": "1/2", "•": r"$\bullet$", "–": "--", "—": "---", "…": r"\dots{}",
    "“": "``", "”": "''", "„": ",,", '"': "''", "‘": "`", "’": "'", "‚": ",", "«": r"$\ll$", "»": r"$\gg$",
    "€": r"\texteuro{}", "£": r"\pounds{}", "©": r"\copyright{}", "®": r"\textregistered{}", "™": r"\texttrademark{}",
    "\u00a0": "~", "\u2009": r"\,",
}  # fmt: skip
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SPECIAL |= {
    letter: rf"$\{name}$" for letter, name in zip("αβγδεζηθικλμνξπρστφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK.split(), strict=True)
}
_SPECIAL |= {digit: f"$_{{{number}}}$" for number, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_LETTERS = set("ßæøœłÆØŒŁ¡¿§¶")
_ACCENTS = set("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_CHINESE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+")  # characters and punctuation

TEXT = r">{\raggedright\arraybackslash}p{.25\linewidth}"  # and that in a table of several pages
LONG_TABLE = 45  # rows: a table with more goes over several pages


def to_latex(table: Shown, caption: str = "", label: str = "") -> str:
    """The table as booktabs, bare to ``\\input`` into a ``table*``; with ``label``, in one of its own.

    Its first line names the packages that it needs. Long texts are broken into lines; what is still too wide, or too
    high for a page, is scaled down. A table of more than :data:`LONG_TABLE` rows is a ``longtable`` on turned pages: it
    must stand in one column and outside of floats. Below the table the notes are one paragraph; signatures are
    comments, which do not print.
    """
    long = len(table.rows) > LONG_TABLE
    widths, types = [], ""
    for number, column in enumerate(table.columns):
        lines = (line for row in table.rows for line in row.texts[number].split("\n"))
        widths.append(max(map(len, lines), default=0))
        wide = widths[-1] > LONG
        types += (TEXT if long else column.align.upper()) if wide else column.align
    text = LATEX.get_template("table.tex").render(
        table=table,
        long=long,
        kind="tabular" if types.islower() else "tabulary",
        types=types,
        header=_header(table, widths),
        caption=caption,
        label=label,
    )
    packages = [*LATEX_PACKAGES, *(name for name, command in OPTIONAL.items() if rf"\begin{{{command}" in text)]
    where = "; must stand in one column, outside of floats" if long else ""
    return rf"% needs \usepackage{{{','.join(packages)}}}{where}" + text


def escape(text: str) -> str:
    """Text with every special character escaped, the known symbols as mathematics, and Chinese in its own font.

    Chinese needs the package :data:`CHINESE`. What none of these fonts has prints as its code point: U+1F600.
    """
    text = re.sub(r"\s±\s", "\u2009±\u2009", re.sub(r'(^|[\s(])"', r"\1“", text))
    in_font = rf"\\begin{{CJK*}}{{UTF8}}{{{FONT}}}\g<0>\\end{{CJK*}}"
    return _CHINESE.sub(in_font, "".join(map(_character, text)))


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character in _LETTERS or (character.isascii() and character.isprintable()):
        return character
    if character.isspace():
        return " "
    if _CHINESE.match(character) and _in_font(character):
        return character
    letter = unicodedata.normalize("NFD", character)
    if letter[0].isascii() and letter[1:] in _ACCENTS:
        return character
    return "" if unicodedata.category(character) == "Cf" else rf"\texttt{{U+{ord(character):04X}}}"


def _in_font(character: str) -> bool:
    """Whether the Chinese font, of the simplified characters of GB 2312, has it; it leaves a gap for any other."""
    try:
        return bool(character.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def _bold(text: str) -> str:
    return rf"\textbf{{{escape(text)}}}" if text else ""


def _header(table: Shown, widths: Sequence[int]) -> str:
    """The titles, in lines as wide as their columns; above them those that neighbours share, with partial rules."""
    titles = []
    for column, width in zip(table.columns, widths, strict=True):
        lines = [_bold(line) for line in textwrap.wrap(column.title, max(width, 9), break_long_words=False)]
        text = r" \\ ".join(lines)
        stack = rf"\begin{{tabular}}[b]{{@{{}}{column.align}@{{}}}}{text}\end{{tabular}}"
        titles.append(stack if len(lines) > 1 else text)
    shared, rules, first = [], "", 1
    for over, count in table.title_groups:
        shared.append(rf"\multicolumn{{{count}}}{{c}}{{{_bold(over)}}}")
        rules += rf"\cmidrule(lr){{{first}-{first + count - 1}}}" if over else ""
        first += count
    above = " & ".join(shared) + f" \\\\\n{rules}\n" if shared else ""
    return above + " & ".join(titles)


def _latex_label(group: Sequence[Row], kind: str) -> str:
    """A group's label, which hangs from its last row upwards, so that no row's colour is painted over it."""
    text = escape(group[0].texts[0])
    width = "=" if kind.isupper() else "*"
    return rf"\multirow{{-{len(group)}}}{{{width}}}{{{text}}}" if len(group) > 1 else text


def _latex_cell(text: str, column: Column) -> str:
    lines = [_bold(line) if isinstance(text, Bold) else escape(line) for line in text.split("\n")]
    return (r"\cellcolor[RGB]{230,241,248}" if column.shaded else "") + r"\newline ".join(lines)


LATEX = Environment(
    loader=TEMPLATES.loader, block_start_string="<%", block_end_string="%>", variable_start_string="<<",
    variable_end_string=">>",
    comment_start_string="<#", comment_end_string="#>", trim_blocks=True, lstrip_blocks=True, autoescape=False,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)  # fmt: skip
LATEX.filters |= {"tex": escape, "cell": _latex_cell, "label": _latex_label, "all_shown": all_shown}

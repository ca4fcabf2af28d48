"""A table in LaTeX, bare or as a float, by a template; and plain text as LaTeX for pdflatex's own fonts."""

from __future__ import annotations

import itertools
import re
import textwrap
import unicodedata
from collections.abc import Sequence

import jinja2

from entropy_valley.tables.render import Column, Group, Table, TableCell
from entropy_valley.texts import shown

PACKAGES = ("booktabs", "multirow", "colortbl", "adjustbox", "tabulary")  # what every table needs
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
LINE, PAGE = 455, 683  # points of an A4 page's text
SMALL = 0.75  # of \footnotesize: the table is turned where it would be smaller

# A turned table stands at a right angle on a page of its own, a long one takes as many pages as it needs.
TEMPLATE = r"""
<% if label and not long %>
\begin{table*}[<< "p" if turned else "t" >>]
<% endif %>
<% if turned and long %>
\begin{landscape}
<% elif turned %>
\noindent\adjustbox{angle=90,max width=\linewidth,center}{\begin{minipage}{.85\textheight}
<% endif %>
\begingroup\centering\footnotesize\setlength{\tabcolsep}{3pt}\setlength{\tymin}{6em}
<% if long %>
\setlength{\LTcapwidth}{\linewidth}
\begin{longtable}{<< types >>}
<% if label %>
\caption{<< caption | tex >>}\label{<< label >>} \\
<% endif %>
\toprule
<< header >> \\
\endfirsthead
\toprule
<< header >> \\
\midrule
\endhead
\bottomrule
\endfoot
<% else %>
\begin{adjustbox}{max width=\linewidth,max totalheight=<< ".7\\textwidth" if turned else ".8\\textheight" >>}
\begin{<< kind >>}<< "{\\linewidth}" if kind == "tabulary" else "" >>{<< types >>}
\toprule
<< header >> \\
<% endif %>
<% for section in table.sections %>
\midrule
<% if section.heading %>
\rowcolor[RGB]{240,238,245}
\multicolumn{<< table.columns | length >>}{l}{\textit{<< section.heading | tex >>}} \\<< "*" if long else "" >>
<% endif %>
<% for group in section.groups %>
<% if not loop.first and section.groups | map(attribute="rows") | map("length") | max > 1 %>
\midrule
<% endif %>
<% for row in group.rows %>
<% if row.shaded %>
\rowcolor[RGB]{230,241,248}
<% endif %>
<% set name = (group.label | tex if loop.first else "") if long else (group | label(types[0]) if loop.last else "") %>
<% set together = "*" if long and loop.length < 10 and not loop.last else "" %>
<< name >> & << row.cells | map("cell") | join(" & ") >> \\<< together >>
<% endfor %>
<% endfor %>
<% endfor %>
<% if long %>
\end{longtable}
<% else %>
\bottomrule
\end{<< kind >>}
\end{adjustbox}
\par\nopagebreak\smallskip
<% endif %>
\parbox{\linewidth}{\scriptsize\raggedright
<% for note in table.notes if not note.signature %>
<< note.text | tex >>
<% endfor %>
}\par\endgroup
<% for note in table.notes if note.signature %>
% << note.text | shown >> << note.signature | shown >>
<% endfor %>
<% if label and not long %>
\caption{<< caption | tex >>}
\label{<< label >>}
<% endif %>
<% if turned and long %>
\end{landscape}
<% elif turned %>
\end{minipage}}
<% endif %>
<% if label and not long %>
\end{table*}
<% endif %>
"""


def to_latex(table: Table, caption: str = "", label: str = "") -> str:
    """The table as booktabs, bare to ``\\input`` into a ``table*``; with ``label``, in one of its own.

    Its first line names the packages that it needs. Long texts are broken into lines where the table is wider than the
    line; what is still too wide, or too high for a page, is turned or scaled down. A table of more than
    :data:`LONG_TABLE` rows is a ``longtable``: it must stand in one column and outside of floats. Below the table the
    notes are one paragraph; signatures are comments, which do not print.
    """
    rows = [[""] * len(table.columns)]
    for group in (group for section in table.sections for group in section.groups):
        rows += [[group.label, *(cell.text for cell in row.cells)] for row in group.rows]
    widths = [max(len(line) for text in column for line in text.split("\n")) for column in zip(*rows, strict=True)]
    long = len(rows) - 1 > LONG_TABLE
    types = "".join(
        column.align if width <= LONG else TEXT if long else column.align.upper()
        for column, width in zip(table.columns, widths, strict=True)
    )
    text = _TEMPLATE.render(
        table=table,
        long=long,
        turned=_turned(table, widths, len(rows), long),
        kind="tabular" if types.islower() else "tabulary",
        types=types,
        header=_header(table.columns, widths),
        caption=caption,
        label=label,
    )
    packages = [*PACKAGES, *(name for name, command in OPTIONAL.items() if rf"\begin{{{command}" in text)]
    where = "; must stand in one column, outside of floats" if long else ""
    return rf"% needs \usepackage{{{','.join(packages)}}}{where}" + text


def _turned(table: Table, widths: Sequence[int], rows: int, long: bool) -> bool:
    """Whether the table is larger at a right angle, and small without. Sizes are estimated from the characters."""
    lines = (_title_lines(column, width) for column, width in zip(table.columns, widths, strict=True))
    titles = (max(map(len, title), default=0) for title in lines)
    columns = (max(4.3 * min(width, LONG), 5 * title) for width, title in zip(widths, titles, strict=True))
    width, height = sum(column + 6 for column in columns), 10 * rows  # points in \footnotesize
    if long:
        return width > LINE
    upright, turned = min(LINE / width, 0.8 * PAGE / height), min(0.85 * PAGE / width, 0.7 * LINE / height)
    return upright < SMALL and turned > upright


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
    base, *accents = unicodedata.normalize("NFD", character)
    if base.isascii() and len(accents) == 1 and accents[0] in _ACCENTS:
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


def _title_lines(column: Column, width: int) -> list[str]:
    """The title in lines as wide as the column."""
    return textwrap.wrap(column.title, max(width, 9), break_long_words=False)


def _header(columns: Sequence[Column], widths: Sequence[int]) -> str:
    """The titles, in lines as wide as their columns; above them those that neighbours share, with partial rules."""
    titles = []
    for column, width in zip(columns, widths, strict=True):
        lines = list(map(_bold, _title_lines(column, width)))
        stack = r"\begin{tabular}[b]{@{}%s@{}}%s\end{tabular}" if len(lines) > 1 else "%.0s%s"
        titles.append(stack % (column.align, r" \\ ".join(lines)))
    if not any(column.over for column in columns):
        return " & ".join(titles)
    shared, rules, first = [], "", 1
    for over, group in itertools.groupby(columns, key=lambda column: column.over):
        last = first + len(list(group)) - 1
        shared.append(rf"\multicolumn{{{last - first + 1}}}{{c}}{{{_bold(over)}}}")
        rules += rf"\cmidrule(lr){{{first}-{last}}}" if over else ""
        first = last + 1
    return " & ".join(shared) + f" \\\\\n{rules}\n" + " & ".join(titles)


def _label(group: Group, kind: str) -> str:
    """A group's label, which hangs from its last row upwards, so that no row's colour is painted over it."""
    text = escape(group.label)
    width = "=" if kind.isupper() else "*"
    return rf"\multirow{{-{len(group.rows)}}}{{{width}}}{{{text}}}" if len(group.rows) > 1 else text


def _cell(cell: TableCell) -> str:
    lines = [_bold(line) if cell.bold else escape(line) for line in cell.text.split("\n")]
    return (r"\cellcolor[RGB]{230,241,248}" if cell.shaded else "") + r"\newline ".join(lines)


_JINJA = jinja2.Environment(
    block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
    comment_start_string="<#", comment_end_string="#>", trim_blocks=True, lstrip_blocks=True, autoescape=False,
    undefined=jinja2.StrictUndefined,
)  # fmt: skip
_JINJA.filters |= {"tex": escape, "cell": _cell, "label": _label, "shown": shown}
_TEMPLATE = _JINJA.from_string(TEMPLATE)

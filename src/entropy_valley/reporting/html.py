"""A table as a page of HTML that needs no other file."""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence

from entropy_valley.plain_text import shown
from entropy_valley.reporting.tables import Cell, Column, Note, Section, Table

TITLES = {  # of tables whose names say little
    "main": "Main results",
    "crossbb": "Results by backbone",
    "crossbb_bleu": "Results by backbone, in BLEU",
    "matrix": "All orders and step budgets",
    "full_significance": "Significance tests",
    "ar_reference": "Autoregressive reference",
    "dream_instruct": "Dream-Instruct",
    "cases": "Three sentences",
    "hyperparams": "Hyperparameters",
    "human_eval": "Human evaluation",
    "human_eval_details": "Human evaluation, in detail",
    "fwdcount_control": "Control of forward passes",
    "defr_transfer": "Transfer to De→Fr",
    "eos_padding": "EOS padding",
}
STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto; max-width: 68rem;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .6rem; }
p { margin: .35rem 0; max-width: 60rem; }
nav { margin: 1rem 0; line-height: 1.9; }
nav a { margin-right: .8rem; white-space: nowrap; }
a { color: #0b57a4; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid #e2e2e2; vertical-align: top; }
thead th { position: sticky; top: 0; background: #fff; box-shadow: 0 2px #444; }
th.over { padding-bottom: 0; }
tr.heading th { background: #f0eef5; text-align: left; padding-top: .6rem; scroll-margin-top: 2.4rem; }
.l { text-align: left; } .c { text-align: center; } .r { text-align: right; }
.shaded { background: #e6f1f8; }
@media print { thead th { position: static; } body { margin: 0; max-width: none; } }
"""


def page(title: str, table: Table, caption: str = "") -> str:
    """The whole page: title, the table's notes, links to its sections, and the table.

    With a ``caption``, that stands above the table, and the notes below.
    """
    notes = "\n".join(f"<p>{_note(note)}</p>" for note in table.notes)
    above, below = (f"<p>{escape(caption)}</p>", notes) if caption else (notes, "")
    headed = [(number, section.heading) for number, section in enumerate(table.sections) if section.heading]
    links = " ".join(f'<a href="#{number}">{escape(heading)}</a>' for number, heading in headed)
    aligns = [column.align for column in table.columns]
    rows = "\n".join(_section(number, section, aligns) for number, section in enumerate(table.sections))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{above}\n<nav>{links}</nav>\n"
        f"<table>\n<thead>{_head(table.columns)}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n{below}\n</body>\n</html>\n"
    )


def title(name: str) -> str:
    """The title of a table's page, from the name of its file."""
    return TITLES.get(name) or f"{name[:1].upper()}{name[1:].replace('_', ' ')}"


def escape(text: str) -> str:
    """A text on one line as HTML."""
    return html.escape(shown(text))


def _head(columns: Sequence[Column]) -> str:
    """The titles, and above them those that neighbours share."""
    titles = "".join(f'<th class="{column.align}">{escape(column.title)}</th>' for column in columns)
    groups = [(over, len(list(group))) for over, group in itertools.groupby(column.over for column in columns)]
    over = "".join(f'<th class="c over" colspan="{count}">{escape(title)}</th>' for title, count in groups)
    return f"<tr>{over}</tr><tr>{titles}</tr>" if any(title for title, _ in groups) else f"<tr>{titles}</tr>"


def _note(note: Note) -> str:
    return escape(note.text) + (f" <code>{escape(note.signature)}</code>" if note.signature else "")


def _section(number: int, section: Section, aligns: Sequence[str]) -> str:
    """The heading in a row of its own, then the rows; a group's label stands in its first."""
    heading = f'<tr class="heading"><th id="{number}" colspan="{len(aligns)}">{escape(section.heading)}</th></tr>'
    lines = [heading] if section.heading else []
    for group in section.groups:
        for place, row in enumerate(group.rows):
            cells = (Cell(group.label if place == 0 else ""), *row.cells)
            texts = "".join(_cell(cell, align, row.shaded) for cell, align in zip(cells, aligns, strict=True))
            lines.append(f"<tr>{texts}</tr>")
    return "\n".join(lines)


def _cell(cell: Cell, align: str, shaded: bool) -> str:
    text = escape(cell.text).replace(" ± ", "&nbsp;±&nbsp;")  # in one line
    text = f"<b>{text}</b>" if cell.bold else text
    return f'<td class="{align}{" shaded" if shaded or cell.shaded else ""}">{text}</td>'

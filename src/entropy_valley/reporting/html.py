"""A table as a page of HTML that needs no other file."""

from __future__ import annotations

import itertools

from entropy_valley.reporting.pages import TEMPLATES
from entropy_valley.reporting.tables import Table

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


def page(title: str, table: Table, caption: str = "") -> str:
    """The whole page: title, the table's notes, links to its sections, and the table.

    With a ``caption``, that stands above the table, and the notes below.
    """
    groups = [(over, len(list(group))) for over, group in itertools.groupby(column.over for column in table.columns)]
    over = groups if any(title for title, _ in groups) else []  # titles that neighbours share
    return TEMPLATES.get_template("table.html").render(title=title, table=table, caption=caption, over=over)


def title(name: str) -> str:
    """The title of a table's page, from the name of its file."""
    return TITLES.get(name) or f"{name[:1].upper()}{name[1:].replace('_', ' ')}"

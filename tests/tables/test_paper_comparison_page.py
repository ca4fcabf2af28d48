"""The table of the paper's numbers: what it reads, and the page."""

from __future__ import annotations

import re

import pytest
from made_up import NOTHING_RUN

from entropy_valley import tables
from entropy_valley.config import base_files, load_files
from entropy_valley.stats.cells import Params
from entropy_valley.tables import render
from entropy_valley.tables.paper_comparison import PaperComparisonTable
from entropy_valley.tables.render import Column, Group, Note, Table, TableCell, TableRow, TableSection

KEY = "tables/paper_comparison"
MAIN = """\
backbone,direction,testset,steps,runs,method,metric,mean,std,gap_closure_mean,gap_closure_std
llada-8b,en-zh,wmt22,32,3,ratio,comet22,0.83,0.0010,0,0
llada-8b,en-zh,wmt22,32,3,ev,comet22,0.8517,0.0010,0.6,0.05
"""


def report(*names):
    configured = tables.configured(load_files([*base_files(), *(f"config/{name}.yaml" for name in names)]))
    return configured.get(KEY)


def params_of(*names):
    paths = [*base_files(), *(f"config/{name}.yaml" for name in names)]
    return report(*names).params(load_files(paths))


def test_it_waits_for_the_tables_of_the_config_alone():
    paper, demo, full = params_of(), params_of("demo"), params_of("demo", "demo-full")
    assert set(demo["tables"]) < set(full["tables"]) <= set(paper["tables"])
    assert "ratio_sweep" not in demo["tables"] and "ratio_sweep" in full["tables"]
    assert (paper["values"], demo["values"], demo["names"]["llada-8b"]) == (True, False, "llada-tiny")
    assert paper["tables"]["main"] == "results/tables/main.csv"


@pytest.fixture
def made(tmp_path):
    (tmp_path / "main.csv").write_text(MAIN)

    def make(**changed):
        given = {**NOTHING_RUN, "tables": {"main": str(tmp_path / "main.csv")}, **changed}
        kind, paths = PaperComparisonTable(), {end: tmp_path / f"out.{end}" for end in PaperComparisonTable.endings}
        kind.write(Params(given), **paths)
        return paths

    return make


def test_each_number_has_a_row_under_its_label(made):
    text = made()["md"].read_text(encoding="utf-8")
    assert "| **Main results (tab:main)** |" in text and text.index("(tab:main)") < text.index("(tab:coverage)")
    assert "COMET-22 is the paper's metric; the column Here has COMET in its place." in text
    assert "| En→Zh, EV: COMET-22 | 0.8517 ± 0.0006 | 0.8517 ± 0.0010 | +0.0000 | equal |" in text
    assert "| En→Zh, Ratio: COMET-22 | 0.8345 ± 0.0017 | 0.8300 ± 0.0010 | −0.0045 | **outside** |" in text
    assert "| En→Zh, EV: COMET-22 closure | 64.9 ± 7.4% | 60.0 ± 5.0% | −4.9% | within |" in text
    assert "| En→Zh: COMET-22 | Oracle > EV > Ratio | EV > Ratio |  | same |" in text
    assert "| En→Zh, run A, EV − Ratio: COMET-22 lead | +0.0196 | – | – | not run |" in text


def test_what_differs_comes_first_and_again_in_its_place(made):
    text = made()["md"].read_text(encoding="utf-8")
    numbers = " | 0.8345 ± 0.0017 | 0.8300 ± 0.0010 | −0.0045 | **outside** |"
    first = text.index(f"| Main results: En→Zh, Ratio: COMET-22{numbers}")
    assert text.index("| **What differs: ") < first < text.index(f"| En→Zh, Ratio: COMET-22{numbers}")
    assert re.search(r"^Values: \d+ outside, ", text, re.M)


def test_a_demo_says_that_sizes_are_not_compared(made):
    text = made(values=False)["md"].read_text(encoding="utf-8")
    assert "sizes cannot be compared" in text and "0.8345" not in text


def test_a_page_has_its_title_in_words():
    assert [render.title(name) for name in ("main", "ratio_sweep", "EV")] == ["Main results", "Ratio sweep", "EV"]


def test_a_page_escapes_what_it_shows():
    row = TableRow((TableCell("<b>", bold=True),), shaded=True)
    table = Table(
        (Column("A & B", align="l"), Column("C")), (TableSection((Group("x<y", (row, row)),), "H"),), (Note("n", "s"),)
    )
    text = render.page("T & U", table)
    assert "<h1>T &amp; U</h1>" in text and "<p>n <code>s</code></p>" in text
    assert text.count('<td class="l shaded whole">x&lt;y</td><td class="c shaded whole"><b>&lt;b&gt;</b></td>') == 1
    assert text.count('<td class="l shaded whole"></td>') == 1  # the label stands in the first row of its group

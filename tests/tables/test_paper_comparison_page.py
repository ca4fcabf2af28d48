"""The table of the paper's numbers: what it reads, and the page."""

from __future__ import annotations

import re

import pytest

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files
from entropy_valley.experiment.config.expand import overlay
from entropy_valley.experiment.config.load import load_merged, merge

KEY = "tables/paper_comparison"
MAIN = """\
backbone,direction,testset,steps,runs,method,metric,mean,std,gap_closure_mean,gap_closure_std
llada-8b,en-zh,wmt22,32,3,ratio,comet22,0.83,0.0010,0,0
llada-8b,en-zh,wmt22,32,3,ev,comet22,0.8517,0.0010,0.6,0.05
"""


def report(*names, **over):
    config = merge([*base_files(), *(f"config/{name}.yaml" for name in names)])
    return tables.configured(load_merged(overlay(config, over), further=tables.problems))[KEY]


@pytest.fixture
def made(tmp_path):
    """The files of the comparison of a main table alone."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/main.csv").write_text(MAIN)

    def make(compare="values"):
        own = {"paper_comparison": {"compare": compare}, "scoring": {"comet": {"label": "COMET"}}}
        one = report(results=str(tmp_path), **own)
        one.names.made = ["main"]
        one.write([f"{tmp_path}/tables/out.{ending}" for ending in one.endings])
        return (tmp_path / "tables/out.md").read_text(encoding="utf-8")

    return make


def test_each_number_has_a_row_under_its_label(made):
    text = made()
    assert "| **Main results (tab:main)** |" in text and text.index("(tab:main)") < text.index("(tab:coverage)")
    assert "COMET-22 is the paper's metric; the column Here has COMET in its place." in text
    assert "| En→Zh, EV: COMET-22 | 0.8517 ± 0.0006 | 0.8517 ± 0.0010 | 0.0000 | equal |" in text
    assert "| En→Zh, Ratio: COMET-22 | 0.8345 ± 0.0017 | 0.8300 ± 0.0010 | −0.0045 | **outside** |" in text
    assert "| En→Zh, EV: COMET-22 closure | 64.9 ± 7.4% | 60.0 ± 5.0% | −4.9% | within |" in text
    assert "| En→Zh: COMET-22 | Oracle > EV > Ratio | EV > Ratio |  | same |" in text
    assert "| En→Zh, run A, EV − Ratio: COMET-22 lead | +0.0196 | – | – | not run |" in text


def test_what_differs_comes_first_and_again_in_its_place(made):
    text = made()
    numbers = " | 0.8345 ± 0.0017 | 0.8300 ± 0.0010 | −0.0045 | **outside** |"
    first = text.index(f"| Main results: En→Zh, Ratio: COMET-22{numbers}")
    assert text.index("| **What differs: ") < first < text.index(f"| En→Zh, Ratio: COMET-22{numbers}")
    assert re.search(r"^Values: \d+ outside, ", text, re.M)

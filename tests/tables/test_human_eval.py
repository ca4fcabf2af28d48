"""The human evaluation beside the paper: each of its numbers has its place, and simulated annotators none."""

import re

import pytest

from entropy_valley import files
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.config.load import load_merged, merge, overlay
from entropy_valley.experiment.stats.paper_numbers import OurTables, numbers
from entropy_valley.experiment.tables.human_eval import systems


def test_the_papers_numbers_find_their_place(run):
    """Every number of its two tables and its figure; the paper names its annotators as our config does."""
    frame = run.numbers("tables/human_eval_details").fillna("").astype(str)
    tables_of_run = OurTables({"human_eval_details": frame}, {})
    labels = ("tab:human_eval", "tab:human_eval_details", "fig:human_eval")
    printed = [number for number in numbers().values() if number.label in labels]
    assert len(printed) > 60
    for number in printed:
        assert tables_of_run.ours(number), number


SHOWN = [
    ({}, ["EV", "Ratio"], True),
    ({"simulated": True}, ["EV", "Ratio"], False),  # no numbers of people
    ({"second": {"method": "ev", "backbone": "dream-7b"}}, ["EV, LLaDA-8B-Base", "EV, Dream-v0-Base-7B"], False),
    ({"second": {"method": "ev", "seed": 2}}, ["EV, seed 1", "EV, seed 2"], False),
    ({"second": {"method": "ratio", "steps": 16}}, ["EV, T = 32", "Ratio, T = 16"], False),
    ({"first": {"method": "ratio_eos"}}, ["Ratio + EOS", "Ratio"], False),
]


@pytest.mark.parametrize(("shown", "names", "of_paper"), SHOWN)
def test_two_systems_are_told_apart_and_only_the_papers_stand_beside_its_numbers(shown, names, of_paper, tmp_path):
    for direction in ("en-zh", "zh-en"):
        (tmp_path / f"{direction}.A.csv").touch()
    over = tmp_path / "over.json"
    files.write_json(over, {"human_evaluation": {**shown, "forms": str(tmp_path)}})
    made = tables.configured(load_files([*base_files(), over]))
    assert systems(made["tables/human_eval"].names, "en-zh") == names
    assert ("human_eval_details" in made["tables/paper_comparison"].names.made) is of_paper


# --- The table of the paper's numbers: what it reads, and the page.

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

"""The human evaluation beside the paper: each of its numbers has its place, and simulated annotators none."""

from __future__ import annotations

import pytest

from entropy_valley import files
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.stats.our_numbers import OurTables
from entropy_valley.experiment.stats.paper_numbers import numbers
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

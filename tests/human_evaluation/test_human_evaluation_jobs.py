"""Packs and filled forms as jobs, and the keys of the config."""

from __future__ import annotations

import fake_ratings
import pytest
from run_rule import run_here

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.human_evaluation import forms
from entropy_valley.experiment.human_evaluation.pack import Pack


@pytest.fixture
def packed(tmp_path):
    """A pack that is there, as the rules read it."""
    fake_ratings.write_pack(tmp_path / "pack.json", tmp_path / "mapping.json")
    return {"pack": tmp_path / "pack.json", "mapping": tmp_path / "mapping.json"}


def rate(packed, *forms):
    """Run the job that reads filled forms."""
    how, out = {"folder": "human_evaluation"}, packed["pack"].with_name("ratings.jsonl")
    run_here("human_ratings", {"annotators": ["A"]}, {**packed, "forms": forms}, out, how)


def test_without_forms_it_says_what_to_do(packed):
    with pytest.raises(InputError, match=r"human_evaluation: has no filled form of en-zh. .*`snakemake packs`"):
        rate(packed)


def test_forms_in_which_no_row_is_rated_are_refused(packed, tmp_path):
    forms.write_csv(tmp_path / "en-zh.A.csv", Pack.read(packed["pack"]))
    with pytest.raises(InputError, match="human_evaluation: no row is rated in the forms of en-zh"):
        rate(packed, tmp_path / "en-zh.A.csv")
    assert not (tmp_path / "ratings.jsonl").exists()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"first": {"method": "zzz"}}, "'zzz' is not defined"),
        ({"second": {"method": "ev"}}, "is the first system"),  # the default
        ({"annotators": ["A", "a"]}, "repeats a; name each once"),
        ({"annotators": ["A", "All"]}, "All stands for all of them together; choose another name"),
        ({"annotators": ["../A"]}, "annotators"),
    ],
)
def test_bad_keys_are_errors_of_the_config(tmp_path, section, message):
    path = tmp_path / "mine.json"
    files.write_json(path, {"human_evaluation": section})
    with pytest.raises(InputError, match=f"human_evaluation.*{message}"):
        load_files([*base_files(), path], tables.problems)

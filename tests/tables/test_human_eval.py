"""The tables of the human evaluation: all rows of the paper's, and what is said of partial forms."""

from __future__ import annotations

import fake_ratings
import pytest

from entropy_valley import files, tables
from entropy_valley.config import base_files, load_files
from entropy_valley.stats.cells import Params
from entropy_valley.stats.our_numbers import TableRows, ours
from entropy_valley.stats.paper_numbers import numbers
from entropy_valley.tables.human_eval import HumanEval, HumanEvalDetails
from entropy_valley.tables.render import to_markdown


@pytest.fixture
def params(tmp_path):
    return fake_ratings.write(tmp_path)


def text(report, params):
    return to_markdown(report.made(Params(params))[0])


def test_the_papers_rows(params):
    summary, details = text(HumanEval(), params), text(HumanEvalDetails(), params)
    assert "| En→Zh | EV − Ratio | +" in summary and "The annotators are simulated" in summary
    rows = ["Δ Adequacy", "Δ Fluency", "Wilcoxon's p", "Preference", "Fleiss' κ", "Kendall's W", "Sign test", "ρ of"]
    for row in rows:
        assert details.count(f"| {row}") + details.count(f"|    {row}") >= 2, row
    assert "Partial" not in summary + details
    assert r"|    Wilcoxon's p | 0.0437\* | 0.1960 | 0.3613 |" in details


def test_a_partial_form_is_said(params):
    path = params["ratings"]["en-zh"]
    given = files.read_jsonl(path)
    kept = [row for row in given if row["annotator"] != "B" or row["id"] > given[4]["id"]]
    files.write_jsonl(path, kept)
    count = sum(row["annotator"] == "B" for row in kept)
    assert f"Partial: of the 24 sentences of En→Zh were rated by A 24, B {count}, C 24." in text(HumanEval(), params)


def test_an_annotator_who_sent_nothing_has_dashes(params):
    path = params["ratings"]["zh-en"]
    files.write_jsonl(path, [row for row in files.read_jsonl(path) if row["annotator"] == "A"])
    details = text(HumanEvalDetails(), params)
    assert (
        "Zh→En were rated by A 24, B 0, C 0" in details and "| Fleiss' κ of preferences | – | – | – | n/a |" in details
    )


def test_the_papers_numbers_find_their_place(params):
    """Every number of its two tables and its figure; the paper names its annotators as our config does."""
    frame = HumanEvalDetails().numbers(Params(params)).fillna("").astype(str)
    tables = {"human_eval_details": TableRows(frame, {}, "comet22", 32, [1])}
    labels = ("tab:human_eval", "tab:human_eval_details", "fig:human_eval")
    printed = [number for number in numbers().values() if number.label in labels]
    assert len(printed) > 60
    for number in printed:
        assert ours(number, tables), number


@pytest.mark.parametrize("simulated", [True, False])
def test_simulated_annotators_never_stand_beside_the_papers(simulated, tmp_path, monkeypatch):
    settings = {"simulated": simulated, "forms": str(tmp_path)}
    over = tmp_path / "over.json"
    files.write_json(over, {"human_evaluation": settings})
    for direction in ("en-zh", "zh-en"):
        (tmp_path / f"{direction}.A.csv").touch()
    made = tables.configured(load_files([*base_files(), over]))["tables/paper_comparison"].made
    assert ("tables/human_eval_details" in made) is not simulated

"""The tables of retention, of groups by r, and of losses, on made-up results small enough to work out."""

from __future__ import annotations

import fake_coverage
import pytest
from making import made
from test_registry import experiment

from entropy_valley import files, tables
from entropy_valley.tables.coverage import CoverageTable

PATHS = ("testsets", "tokens")  # params by cell


@pytest.fixture
def params(tmp_path):
    return fake_coverage.write(tmp_path)


def rows_of(section):
    return {group.label: [cell.text for cell in group.rows[0].cells] for group in section.groups}


def test_no_sentences_are_a_count_of_0_and_dashes(params):
    table, _ = made(CoverageTable, params | {"eos": True})
    assert rows_of(table.sections[1])["0.6 ≤ r < 0.8"] == ["0", *["–"] * 5]
    assert any("the reference and its EOS" in note.text for note in table.notes)


def test_digits_in_chinese_sources_are_told_beside_those_that_the_rule_counts(tmp_path, params):
    rows = files.read_jsonl(tmp_path / "test.jsonl")
    texts = ["他有3只猫。", "他有 3 只猫。", "没有。", "#NAME#", "好。"]
    files.write_jsonl(tmp_path / "test.jsonl", [{**row, "source": text} for row, text in zip(rows, texts, strict=True)])
    cells = [{**cell, "direction": "zh-en"} for cell in params["cells"]]
    other = {key: {name.replace("en-zh", "zh-en"): path for name, path in params[key].items()} for key in PATHS}
    table, _ = made(CoverageTable, params | {"cells": cells, **other})
    assert rows_of(table.sections[0])["Numbers"][0] == "1"
    assert any(note.text.startswith("Numbers of zh-en: 2 of 5 sources have digits") for note in table.notes)


def test_n_beside_the_papers(params):
    paper = {"en-zh": {"placeholder": 2, "number": 3, "r<0.6": 236}}
    table, _ = made(CoverageTable, params | {"paper": paper})
    expected = "N of En→Zh: as in the paper but for Numbers (2; paper: 3), r < 0.6 (1; paper: 236)."
    assert expected in [note.text for note in table.notes]
    table, _ = made(CoverageTable, params | {"paper": {"en-zh": {"placeholder": 2}}})
    assert "N of En→Zh: as in the paper." in [note.text for note in table.notes]


def papers_numbers(**over):
    found = experiment(**over)
    return tables.configured(found)["tables/coverage"].params(found)["paper"]


def test_the_papers_numbers_are_asked_of_its_own_test_set_and_tokenizer():
    literal = {"en-zh": {"placeholder": 58, "number": 290, "entity": 879}, "zh-en": {"placeholder": 58, "number": 303}}
    buckets = {"r<0.6": 236, "0.6<=r<0.8": 796, "r>=0.8": 1005}
    assert papers_numbers() == literal | {"en-zh": literal["en-zh"] | buckets}
    assert papers_numbers(coverage={"buckets": {"en-zh": [0.5, 0.7]}}) == literal
    assert papers_numbers(tables={"backbone": "dream-7b"}) == literal
    assert papers_numbers(corpus={"test_limit": 200}) == {}

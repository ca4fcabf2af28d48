"""The tables of retention, of groups by r, and of losses, on made-up results small enough to work out."""

from __future__ import annotations

import fake_coverage
import pytest
from making import made
from test_registry import experiment

from entropy_valley.reporting import reports
from entropy_valley.reporting.reports.coverage import Coverage, FaithfulnessSummary
from entropy_valley.reporting.reports.failure_buckets import FailureBuckets


@pytest.fixture
def params(tmp_path):
    return fake_coverage.write(tmp_path)


def rows_of(section):
    return {group.label: [cell.text for cell in group.rows[0].cells] for group in section.groups}


def test_a_section_for_literal_items_and_one_for_r(params):
    table, _ = made(Coverage, params)
    literal, by_r = table.sections
    assert (literal.heading, by_r.heading) == ("En→Zh: retention, Δ in pp", "En→Zh: toy COMET by r")
    rows = rows_of(literal)
    assert list(rows) == ["Placeholders", "Numbers", "Capitalised words"]
    assert rows["Placeholders"][:4] == ["2", "0.0%", "0.0%", "62.5%"]
    assert rows["Placeholders"][4].startswith("+62.5 [+50.0, +75.0]*")
    assert list(rows_of(by_r)) == ["r < 0.6", "0.6 ≤ r < 0.8", "r ≥ 0.8"]
    assert rows_of(by_r)["r < 0.6"] == [
        *("1", "0.6000", "0.4000", "0.5000"),
        *("−0.1000 [−0.1000, −0.1000]", "+0.1000 [+0.1000, +0.1000]*"),
    ]


def test_no_sentences_are_a_count_of_0_and_dashes(params):
    table, _ = made(Coverage, params | {"eos": True})
    assert rows_of(table.sections[1])["0.6 ≤ r < 0.8"] == ["0", *["–"] * 5]
    assert any("the reference and its EOS" in note.text for note in table.notes)


def test_the_best_is_bold_unless_all_are_alike(params, tmp_path):
    table, _ = made(Coverage, params)
    bold = [[cell.bold for cell in group.rows[0].cells[1:4]] for group in table.sections[0].groups]
    assert bold[0] == [False, False, True]
    equal = {name: [0.5] * 5 for name in fake_coverage.SCORES}
    table, _ = made(Coverage, fake_coverage.write(tmp_path / "equal", equal))
    assert not any(cell.bold for group in table.sections[1].groups for cell in group.rows[0].cells)


def test_n_beside_the_papers(params):
    paper = {"en-zh": {"placeholder": 2, "number": 3, "r<0.6": 236}}
    table, _ = made(Coverage, params | {"paper": paper})
    expected = "N of En→Zh: as in the paper but for Numbers (2; paper: 3), r < 0.6 (1; paper: 236)."
    assert expected in [note.text for note in table.notes]
    table, _ = made(Coverage, params | {"paper": {"en-zh": {"placeholder": 2}}})
    assert "N of En→Zh: as in the paper." in [note.text for note in table.notes]


def test_the_summary_has_the_papers_four_rows(params):
    table, numbers = made(FaithfulnessSummary, params)
    (section,) = table.sections
    names = ["Placeholder retention", "Number retention", "r ≥ 0.8: toy COMET", "r < 0.6: toy COMET"]
    assert list(rows_of(section)) == names
    assert rows_of(section)["Number retention"] == ["2", "0.0%", "0.0%", "62.5%"]
    assert len(numbers) == 4 * 3


def test_losses_by_cause_against_either_ratio(params):
    table, _ = made(FailureBuckets, params)
    (section,) = table.sections
    assert section.heading == "En→Zh, N = 5"
    rows = rows_of(section)
    assert rows["Very short source"] == ["1.0", "33.3%", "−0.3000", "0.0", "–", "–"]
    assert rows["Under-compression"] == ["0.0", "–", "–", "1.0", "100.0%", "−0.1000"]
    assert rows["All losses"] == ["3.0", "100.0%", "−0.2000", "1.0", "100.0%", "−0.1000"]
    assert any("means over 2 runs" in note.text for note in table.notes)


def papers_numbers(**over):
    found = experiment(**over)
    return reports.configured(found)["tables/coverage"].params(found)["paper"]


def test_the_papers_numbers_are_asked_of_its_own_test_set_and_tokenizer():
    literal = {"en-zh": {"placeholder": 58, "number": 290, "entity": 879}, "zh-en": {"placeholder": 58, "number": 303}}
    buckets = {"r<0.6": 236, "0.6<=r<0.8": 796, "r>=0.8": 1005}
    assert papers_numbers() == literal | {"en-zh": literal["en-zh"] | buckets}
    assert papers_numbers(coverage={"buckets": {"en-zh": [0.5, 0.7]}}) == literal
    assert papers_numbers(tables={"backbone": "dream-7b"}) == literal
    assert papers_numbers(corpus={"test_limit": 200}) == {}

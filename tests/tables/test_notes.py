from __future__ import annotations

import dataclasses
import math
import statistics

import pytest
from fake_results import write
from fake_sets import put, rows

from entropy_valley import files
from entropy_valley.results import SCORES
from entropy_valley.stats.cells import Params
from entropy_valley.stats.comparisons import doubtful_gaps
from entropy_valley.tables import notes

MEASURED = {
    "batch": 32,
    "single": {"seconds_per_sentence": 0.5, "repeats": [0.5, 0.4, 0.6]},
    "sentences": 32,
    "device": "a processor",
    "threads": 2,
    "torch": "2.13.0+cpu",
    "precision": "float32",
    "token_budget": 1024,
    "date": "2026-11-21",
}


@pytest.fixture
def params(tmp_path):
    params = Params(write(tmp_path, directions=("en-zh",), backbones={"llada-tiny": (1,)}))
    for cell in params.cells:
        files.write_json(cell.latency_file, MEASURED)
    return params


@pytest.mark.parametrize("ahead", [0.05, 0.001, -0.05])
def test_runs_whose_lead_may_be_chance_are_named(tmp_path, ahead):
    comet = {"oracle": 0.85 + ahead, "ratio": 0.85, "ev": 0.85}
    given = write(tmp_path, directions=("en-zh", "en-de"), backbones={"llada-tiny": (1, 2)}, comet=comet)
    found = [note.text for note in notes.doubtful_gaps(Params(given))]
    said = (
        "Gap closure leaves out runs, in any metric, where Oracle's lead in toy COMET may be chance (at most 1.96 "
        "standard errors over sentences): LLaDA-tiny En→Zh (2 of 2 runs), LLaDA-tiny En→De (2 of 2 runs)."
    )
    assert found == ([] if ahead == 0.05 else [said])


def test_a_lead_is_compared_with_its_standard_error_in_the_metrics_direction(params):
    oracle, ratio = (cell for cell in params.cells if cell.method in ("oracle", "ratio"))
    both = zip(rows(oracle, SCORES), rows(ratio, SCORES), strict=True)
    differences = [row["comet22"] - other["comet22"] for row, other in both]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    for lead, doubtful in ((1.9, True), (2.0, False), (-2.0, True)):
        shift = lead * error - statistics.fmean(differences)
        put(oracle, SCORES, [row | {"comet22": row["comet22"] + shift} for row in rows(oracle, SCORES)])
        assert doubtful_gaps(params.cells, "ratio", params.metric) == {oracle: doubtful}
        differences = [value + shift for value in differences]
    lower = dataclasses.replace(params.metric, higher_is_better=False)
    assert doubtful_gaps(params.cells, "ratio", lower) == {oracle: False}


def test_where_and_when_latencies_were_measured(params):
    (note,) = notes.timing(params)
    assert note.text == (
        "Latency: median of 3 rounds, 32 sentences; a processor, 2 threads, torch 2.13.0+cpu, float32, "
        "at most 1024 tokens a pass; 2026-11-21."
    )


def test_another_day_is_another_line(params):
    files.write_json(params.cells[0].latency_file, MEASURED | {"date": "2026-11-22"})
    assert [note.text[-11:] for note in notes.timing(params)] == ["2026-11-22.", "2026-11-21."]


def test_the_number_of_sentences_of_each_test_set(tmp_path):
    params = Params(write(tmp_path, backbones={"llada-tiny": (1, 2)}, sentences=2037))
    assert notes.sentences(params).text == "N = 2,037 sentences."
    for cell in params.cells:
        if cell.direction == "en-de":
            put(cell, SCORES, sentences=500)
    assert notes.sentences(params).text == "Sentences (N): En→Zh, Zh→En: 2,037; En→De: 500."


def test_a_table_without_cells_names_no_provenance():
    assert notes.provenance(Params(cells=(), metrics=())) == ()

from __future__ import annotations

import pytest
from fake_results import change, write

from entropy_valley import files
from entropy_valley.analysis.params import Params
from entropy_valley.reporting import notes

MEASURED = {
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
    params = Params.parse(files.canonical(write(tmp_path, directions=("en-zh",), backbones={"llada-tiny": (1,)})))
    for cell in params.cells:
        files.write_json(cell.latency, MEASURED)
    return params


def test_where_and_when_latencies_were_measured(params):
    (note,) = notes.timing(params)
    assert note.text == (
        "Latency: median of 3 rounds, 32 sentences; a processor, 2 threads, torch 2.13.0+cpu, float32, "
        "at most 1024 tokens a pass; 2026-11-21."
    )


def test_another_day_is_another_line(params):
    files.write_json(params.cells[0].latency, MEASURED | {"date": "2026-11-22"})
    assert [note.text[-11:] for note in notes.timing(params)] == ["2026-11-22.", "2026-11-21."]


def test_the_number_of_sentences_of_each_test_set(tmp_path):
    params = Params.parse(files.canonical(write(tmp_path, backbones={"llada-tiny": (1, 2)}, sentences=2037)))
    assert notes.sentences(params).text == "N = 2,037 sentences."
    for cell in params.cells:
        if cell.direction == "en-de":
            change(cell.path, sentences=500)
    assert notes.sentences(params).text == "Sentences (N): En→Zh, Zh→En: 2,037; En→De: 500."


def test_a_table_without_cells_names_no_provenance():
    assert notes.provenance(Params(cells=(), metrics=())) == ()

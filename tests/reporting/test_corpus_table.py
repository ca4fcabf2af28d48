"""The table of training pairs: what was read, dropped and drawn, and how long translations are."""

from __future__ import annotations

from pathlib import Path

import fake_corpora
from making import made
from test_registry import experiment

from entropy_valley import files
from entropy_valley.reporting import reports
from entropy_valley.reporting.reports.corpus import Corpus


def rows(table, sections=slice(None, -1)):
    """The texts of each row by its label; of all sections but the last one, the percentiles."""
    groups = [group for section in table.sections[sections] for group in section.groups]
    return {group.label: [cell.text for cell in group.rows[0].cells] for group in groups}


def test_numbers_by_direction(tmp_path):
    table, numbers = made(Corpus, fake_corpora.write(tmp_path))
    found = rows(table)
    assert found["Source"] == ["wmt19-zh-en"] * 2
    assert found["Pairs read"] == ["1,000,000"] * 2 and found["Kept"] == ["998,700"] * 2
    assert found["Dropped"] == ["1,300"] * 2
    assert found["– source too short"] == ["1,200", "66"] and found["– target too short"] == ["66", "1,200"]
    assert found["– source too long"] == ["30", "0"] and found["– target blank"] == ["4", "0"]
    assert found["LLaDA-tiny"] == ["0.80 (0.83)", "1.24 (1.30)"]
    assert found["Dream-tiny"] == ["–", "1.50 (1.60)"]
    assert found["LLaDA-8B-Base, in the paper"] == ["–", "1.24"]
    spread = rows(table, slice(-1, None))
    assert spread == {"LLaDA-tiny": ["0.55 0.62 0.80 0.90 1.00"] * 2, "Dream-tiny": ["–", "0.55 0.62 0.80 0.90 1.00"]}
    values = numbers.set_index(["direction", "backbone", "metric"])["value"]
    parts = [
        values["en-zh", "", f"dropped_{side}_{why}"]
        for side in ("source", "target")
        for why in ("blank", "short", "long")
    ]
    assert sum(parts) == values["en-zh", "", "dropped"] == 1300
    assert values["zh-en", "llada-tiny", "length_ratio_median"] == 1.2375


def test_notes_say_filters_and_digests(tmp_path):
    params = fake_corpora.write(tmp_path)
    table, _ = made(Corpus, params | {"paper": {}})
    notes = {note.text: note.signature for note in table.notes}
    assert "Length filters, both ends included: En 5–200 words, Zh 2–600 characters." in notes
    assert notes["Training pairs of En→Zh, N = 20,000:"] == "digest of en-zh"
    assert "LLaDA-8B-Base, in the paper" not in rows(table)


def test_a_language_without_limits_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(fake_corpora.FILTERS, "zh", {})
    table, _ = made(Corpus, fake_corpora.write(tmp_path))
    assert any(note.text == "Length filters, both ends included: En 5–200 words, Zh none." for note in table.notes)


def test_what_an_earlier_version_did_not_count_is_not_zero(tmp_path):
    table, _ = made(Corpus, fake_corpora.write(tmp_path, dropped=None))
    assert rows(table)["– source too short"] == ["–", "–"] and rows(table)["Dropped"] == ["1,300"] * 2
    assert any("earlier version" in note.text for note in table.notes)
    table, _ = made(Corpus, fake_corpora.write(tmp_path, dropped=None, filtered=0))
    assert rows(table)["– source too short"] == ["0", "0"]  # nothing was dropped
    assert not any("earlier version" in note.text for note in table.notes)


def test_ratios_of_an_earlier_version_have_no_percentiles(tmp_path):
    params = fake_corpora.write(tmp_path)
    path = Path(params["directions"][0]["ratios"])
    files.write_json(path, {"llada-tiny": {"median": 0.8, "mean": 0.83, "pairs": 20_000}})
    table, _ = made(Corpus, params)
    assert rows(table)["LLaDA-tiny"] == ["0.80 (0.83)", "1.24 (1.30)"]
    assert rows(table, slice(-1, None))["LLaDA-tiny"] == ["–", "0.55 0.62 0.80 0.90 1.00"]


def test_a_config_has_it_for_all_directions_and_checkpoints_that_train():
    paper = experiment()
    report = reports.configured(paper)["tables/corpus"]
    params = report.parsed.parse(report.params(paper))
    assert {"en-zh", "zh-en", "en-de"} <= {one.direction for one in params.directions}
    assert {"llada-8b", "dream-7b", "diffullama-7b", "llama3-8b"} <= params.backbones.keys()
    assert not any(name.startswith("dream-instruct-") for name in params.backbones)
    assert (params.paper["en-zh"], params.paper["zh-en"], params.paper["en-de"]) == ("0.80", "1.24", "1.48")
    assert "results/corpus/en-de/length_ratios.json" in report.inputs(paper)


def test_given_adapters_draw_no_pairs():
    given = {"llada-8b": {name: {1: {"folder": "x"}} for name in ("en-zh", "zh-en", "en-de")}}
    small = {"matrix": {"backbones": ["llada-8b"], "seeds": [1]}, "tables": {"studies": []}, "released": given}
    alone = {"autoregressive": {"backbones": []}, "instruct": {"backbones": []}}
    assert "tables/corpus" not in reports.configured(experiment(adapters="released", **small, **alone))

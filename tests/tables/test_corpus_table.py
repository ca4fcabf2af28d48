"""The table of training pairs: what was read, dropped and drawn, and how long translations are."""

from __future__ import annotations

import fake_corpora
from making import made
from test_registry import experiment

from entropy_valley import tables
from entropy_valley.tables.corpus import CorpusTable


def rows(table, sections=slice(None, -1)):
    """The texts of each row by its label; of all sections but the last one, the percentiles."""
    groups = [group for section in table.sections[sections] for group in section.groups]
    return {group.label: [cell.text for cell in group.rows[0].cells] for group in groups}


def test_a_language_without_limits_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(fake_corpora.FILTERS, "zh", {})
    table, _ = made(CorpusTable, fake_corpora.write(tmp_path))
    assert any(note.text == "Length filters, both ends included: En 5–200 words, Zh none." for note in table.notes)


def test_a_config_has_it_for_all_directions_and_checkpoints_that_train():
    paper = experiment()
    report = tables.configured(paper)["tables/corpus"]
    params = report.params(paper)
    backbones = [name for name, _ in params["backbones"]]
    assert {"en-zh", "zh-en", "en-de"} <= {one["direction"] for one in params["directions"]}
    assert {"llada-8b", "dream-7b", "diffullama-7b", "llama3-8b"} <= set(backbones)
    assert not any(name.startswith("dream-instruct-") for name in backbones)
    assert params["paper"] == {"en-zh": "0.80", "zh-en": "1.24", "en-de": "1.48"}
    assert "results/corpus/en-de/length_ratios.json" in report.inputs(paper)


def test_given_adapters_draw_no_pairs():
    given = {"llada-8b": {name: {1: {"folder": "x"}} for name in ("en-zh", "zh-en", "en-de")}}
    small = {"matrix": {"backbones": ["llada-8b"], "seeds": [1]}, "tables": {"studies": []}, "released": given}
    alone = {"autoregressive": {"backbones": []}, "instruct": {"backbones": []}}
    assert "tables/corpus" not in tables.configured(experiment(adapters="released", **small, **alone))

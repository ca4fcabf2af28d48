"""Finished cells as mt-metrics-eval reads them: its README has the format."""

from __future__ import annotations

import finished
import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.config.expand import overlay
from entropy_valley.experiment.config.load import load_merged
from entropy_valley.experiment.tables import mt_metrics_eval


def test_every_file_has_its_place_and_a_line_for_each_sentence(run, tmp_path):
    out = tmp_path / "out"
    lines = mt_metrics_eval.export(run.experiment, out)
    assert "grammar zh-en: 49 systems, 16 sentences, toy_comet, bleu, chrf" in lines
    texts = {
        str(path.relative_to(out / "grammar")): path.read_text(encoding="utf-8").splitlines()
        for path in (out / "grammar").rglob("*.*")
    }
    files = {"sources/zh-en.txt", "references/zh-en.ref.txt", "documents/zh-en.docs"}
    assert files < texts.keys() and {len(texts[name]) for name in files} == {16}
    assert texts["sources/zh-en.txt"][1] == "我们的同事很可靠。"
    assert texts["documents/zh-en.docs"] == ["grammar grammar"] * 16
    systems = [name.split("/")[-1].removesuffix(".txt") for name in texts if name.startswith("system-outputs/zh-en/")]
    assert len(systems) == 49 and not any(set(name) & set(" /") for name in systems)
    scores = {name.split("/")[-1]: len(rows) for name, rows in texts.items() if name.startswith("metric-scores/zh-en/")}
    assert scores == {
        **{f"{metric}-ref.sys.score": 49 for metric in ("toy_comet", "bleu", "chrf")},
        **{f"{metric}-ref.seg.score": 784 for metric in ("toy_comet", "chrf")},
    }


def test_nothing_is_overwritten_and_nothing_written_in_vain(run, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        mt_metrics_eval.export(run.experiment, tmp_path)
    empty = run.experiment.model_copy(update={"results": str(tmp_path / "none")})
    with pytest.raises(InputError, match="no cell of this config is scored"):
        mt_metrics_eval.export(empty, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_results_of_another_config_are_not_exported(tmp_path):
    run = finished.Run(tmp_path)
    ratios = {"length_methods": {"ev": {"ratios": {"en-zh": [0.9, 1.1]}}}}
    other = load_merged(overlay(finished.config(), ratios | {"results": str(run.root)}), further=tables.problems)
    with pytest.raises(InputError, match=r"is older than the config: methods\.ev"):
        mt_metrics_eval.export(other, tmp_path / "out")

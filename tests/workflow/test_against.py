"""What changes from one config to another, as it is said without Snakemake's graph, and as Snakemake then plans it."""

from __future__ import annotations

import pytest
import yaml
from workspace import MIXED, ROOT

from entropy_valley.experiment import base_files
from entropy_valley.experiment.loading import load, merge, overlay
from entropy_valley.reporting import against, reports

BASE = overlay(merge([*base_files(ROOT), ROOT / "config/demo.yaml"]), MIXED)
OVERS = {
    "grid": {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}},
    "rank": {"training": {"lora": {"rank": 16}}, "analysis": {"resamples": 50}},
    "seed": {"matrix": {"seeds": [1, 2, 3], "steps": [16, 32]}},
    "prompt": {"directions": {"en-de": {"prompt": "{src} = "}}},
    "valley": {"valley": {"backbones": ["llada-tiny"]}, "autoregressive": {"max_new_tokens": 9}},
    "study": {
        "tables": {"studies": ["mine"]},
        "studies": {"mine": {"methods": ["ratio", "ev_wide"], "columns": ["comet", "latency"], "testset": "dev"}},
    },
    "fewer": {"matrix": {"methods": ["oracle", "ratio", "ev"], "directions": ["en-zh"]}},
}


def experiment(over):
    return load(overlay(BASE, over), further=reports.problems)


@pytest.mark.parametrize("over", OVERS.values(), ids=list(OVERS))
def test_snakemake_plans_what_is_said(finished, over):
    compared = against.compare(experiment({}), experiment(over))
    said = {" ".join([key[0], ".".join(key[1:])]).rstrip() for key in [*compared.again, *compared.added]}
    planned = {job for job in finished.planned(over=over, last=True) if job.split()[0] in against.ORDER}
    assert said == planned


def test_it_is_said_in_words():
    over = {"matrix": {"seeds": [1], "steps": [16, 32]}, **OVERS["grid"]}
    text = "\n".join(against.lines(experiment({}), experiment(over), against.differences(BASE, overlay(BASE, over))))
    assert text.startswith("3 keys of the config differ:\n")
    assert "  matrix.seeds: 1 2 → 1\n" in text
    assert "  length_methods.ev.ratios.en-zh: 0.55 0.62 0.71 0.8 1.0 → 0.6 0.8 1.0\n" in text
    assert "  ratios of en-zh: 0.55 0.62 0.71 0.8 1.0 → 0.6 0.8 1.0\n" in text
    assert "  train (2): en-zh en-de × llada-tiny × seed 2\n" in text
    assert text.endswith("26 cells before, 34 after: 16 as before, 2 again, 16 added, 8 gone")


def test_the_command_lays_files_over_a_config(tmp_path, capsys, monkeypatch):
    from entropy_valley import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"analysis": {"resamples": 50}}))
    files = [*map(str, base_files(ROOT)), str(ROOT / "config/demo.yaml")]
    command = ["entropy-valley", "audit", "--configfile", *files, "--against", "mine.yaml"]
    monkeypatch.setattr("sys.argv", command)
    cli.main()
    said = capsys.readouterr().out
    assert f"{files[-1]}\nAgainst:  the same, mine.yaml\n1 key of the config differs:\n" in said
    assert "  analysis.resamples: 10000 → 50\n" in said
    assert "63 cells before, 63 after: 63 as before, 0 again, 0 added, 0 gone\n" in said

"""Every report of a config with all studies, on made-up results: its cells fit together, and it lists what it reads."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import fake_ratings
import fake_results
import numpy as np
import pytest
from entropy_valley.stats.cells import Params
from entropy_valley.stats.signatures import require_alike
from test_notes import MEASURED

from entropy_valley import files, results, tables
from entropy_valley.config import base_files
from entropy_valley.config.expand import overlay
from entropy_valley.config.load import load_merged, read_yaml
from entropy_valley.config.matrix import sets_of
from entropy_valley.results import system_of, tidy
from entropy_valley.runs.inventory import Inventory
from entropy_valley.tables.base import OfTables, TableReport

ROOT = Path(__file__).parents[2]
SMALL = {"matrix": {"directions": ["en-zh"], "seeds": [1], "seeds_of": {}}}
IDS = [f"s{number}" for number in range(30)]
SENTENCES = [{"id": name, "source": f"Anna had {name[1:]} cats on Monday.", "target": "猫"} for name in IDS]
RATIOS = {f"{name}": 0.8 for name in ("median", "mean", "pairs", "p10", "p30", "p50", "p70", "p90")}
LOSSES = "step,loss,cross_entropy,learning_rate,gradient_norm\n1,9,8,0.1,1\n2,6,5,0.1,1\n"
DIGESTS = {"backbone_digest": "b", "adapter_digest": "a", "shifted": False, "data_digest": "d"}
TOTALS = dict.fromkeys(("sentences", "calls", "slots", "passes", "within_steps", "run_tokens"), len(IDS))


class Results:
    """Made-up results of a config; ``inventory`` has its jobs."""

    def __init__(self, experiment):
        self.experiment, self.inventory = experiment, Inventory(experiment)
        self.generator = np.random.default_rng(1)
        for job in self.inventory.all():
            if content := getattr(self, job.rule, None):
                rows, facts = content(job)
                outputs = job.outputs if job.rule == "corpus" else job.outputs[:1]
                with results.made(job.rule, json.loads(job.spec), [], outputs) as record:
                    record.facts.update(facts)
                    write = files.write_jsonl if job.outputs[0].endswith("l") else files.write_json
                    write(job.outputs[0], rows)

    def translate(self, job):
        canvas = {"length": 2, "candidates": [2, 3], "scores": [0.5, 0.4]}
        rows = [{"id": name, "hypothesis": "猫", "length": 2, "canvas": canvas} for name in IDS]
        signed = [
            (cell, {**DIGESTS, "decoder": f"{cell.run.backbone} {cell.order}-T{cell.steps}"}) for cell in job.cells
        ]
        cells = [{**system_of(cell)._asdict(), **TOTALS, "signature": signature} for cell, signature in signed]
        return tidy({system_of(cell): rows for cell in job.cells}), {"cells": cells}

    def score(self, job):
        """Scores of all systems lie close together."""
        names = ("toy_comet", "bleu", "chrf")
        rows, cells = {}, []
        for cell in job.cells:
            scores = self.generator.normal(0.8, 0.1, len(IDS)).tolist()
            rows[system_of(cell)] = [{"id": i, **dict.fromkeys(names, x)} for i, x in zip(IDS, scores, strict=True)]
            system = {**dict.fromkeys(names, sum(scores)), "signatures": dict.fromkeys(names, "x"), **TOTALS}
            cells.append({**system_of(cell)._asdict(), **system})
        return tidy(rows), {"cells": cells}

    def testset(self, job):
        return SENTENCES, {}

    dev_as_testset = testset

    def tokens(self, job):
        return [{"id": name, "source_tokens": 1, "target_tokens": 1} for name in IDS], {}

    def overlap(self, job):
        return {"sentences": 30, "repeated": 0, "copied": 0, "invisible": 0}, {}

    def corpus(self, job):
        counts = {"read": 9, "filtered": 0, "train": 8, "dev": 1}
        files.write_jsonl(job.outputs[1], [])
        files.write_json(job.outputs[2], {"counts": counts, "filters": {}, "digest": {"train": "", "dev": ""}})
        return [], {"dropped": {}}

    def length_ratios(self, job):
        return {name: RATIOS for name in json.loads(job.spec)["tokenizers"]}, {}

    def train(self, job):
        files.write_text(Path(job.outputs[0]).with_name("losses.csv"), LOSSES)
        return {"spec": json.loads(job.spec), "vocabulary": 99}, {}

    def diagnose(self, job):
        wanted = json.loads(job.spec)["testsets"]
        sig = [{"id": name, "concentration": 0.1 * (number % 5)} for number, name in enumerate(IDS)]
        valley = fake_results.valley(self.generator, len(IDS)) | {"source_tokens": dict.fromkeys(IDS, 1)}
        kinds = {"valley": valley, "sig": sig}
        return {kind: dict.fromkeys(testsets, kinds[kind]) for kind, testsets in wanted.items()}, {}

    def latency(self, job):
        return {**MEASURED, "batched": {"seconds_per_sentence": 0.1}}, {}

    def human_ratings(self, job):
        made = fake_ratings.write(Path("ratings"))["ratings"]["en-zh"]
        return files.read_jsonl(made), {}


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """The longest demo, of one direction and one seed."""
    named = [*base_files(ROOT), *(ROOT / f"config/{name}.yaml" for name in ("demo", "demo-full"))]
    monkeypatch.chdir(tmp_path)
    experiment = load_merged(functools.reduce(overlay, [*map(read_yaml, named), SMALL]), further=tables.problems)
    assert {one.name for one in sets_of(experiment).all} > {"matrix", "autoregressive", "instruct"}
    return experiment


def test_every_report_lists_what_it_reads(experiment):
    made = Results(experiment)
    files.write_text(f"{made.inventory.root}/benchmarks/train/one.tsv", "s\n1\n")
    for name, report in made.inventory.reports.items():
        if not isinstance(report, OfTables):
            read = {}
            results._systems.cache_clear()
            results._entries.cache_clear()
            with files.noted(read):
                params = Params(json.loads(made.inventory.report(name)))
                if report.scored:
                    require_alike(params.cells)
                (report.made if isinstance(report, TableReport) else report.numbers)(params)
            paths = map(Path, read)
            beside = {path.with_name("adapter.json") if path.name == "losses.csv" else path for path in paths}
            unknown = set(map(str, beside)) - set(report.inputs(experiment))
            assert {path for path in unknown if "/benchmarks/" not in path} == set(), name

"""Options of Snakemake, and workflows around this one, do here what Snakemake's manual says."""

import json
import re

import pytest
import yaml
from workspace import ROOT, STUB, Workspace, by_rule, sets

from entropy_valley.experiment.config.load import merge, overlay
from entropy_valley.experiment.runs.audit import MISSING, Audit
from entropy_valley.experiment.runs.jobs import listed

CONFIG = {
    "check": False,
    "results": "results",
    "matrix": {"backbones": ["llada-tiny"], "directions": ["en-zh", "en-de"], "seeds": [1]},
    "instruct": {"backbones": []},
    "autoregressive": {"backbones": []},
    "valley": {"backbones": []},
    "tables": {"studies": []},
}
MAIN = "results/tables/main.tex"  # reads both sets
FAILING, FAILED = "en-de.llada-tiny.1", "results/en-de/llada-tiny/seed1/matrix"
OTHERWISE = {"decoding": {"precision": "bfloat16"}}  # all sets are translated anew
FAILS = f"{STUB}\nif {FAILED!r} in snakemake.output[0]:\n    raise SystemExit(1)\n"


def write_scripts(workspace, text, names="*"):
    for script in (workspace.folder / "workflow/scripts").glob(f"{names}.py"):
        script.write_text(text)


@pytest.fixture
def done(tmp_path):
    """Two runs of one backbone, and all that the main table needs."""
    workspace = Workspace(tmp_path, "config/demo.yaml", CONFIG)
    workspace.finish(MAIN)
    return workspace


def test_a_config_is_laid_over_the_one_that_it_extends(tmp_path):
    """In the process that a user starts, below --config; and in the config that it hands down to jobs on a cluster."""
    mine = Workspace(tmp_path, {"extends": "config/demo.yaml", "matrix": {"seeds": [1, 7]}})
    mine.run("mine/corpus/en-zh/corpus.json", "--cores", "1", "--config", "results=mine", "confirm=yes")
    (path,) = (tmp_path / "mine/work/configs").iterdir()
    config = json.loads(path.read_text())
    assert config["matrix"]["backbones"][0] == "llada-tiny" and config["matrix"]["seeds"] == [1, 7]
    assert config["confirm"] is True  # as scripts read it, too
    text = mine.run("-n", "all", fails=True, over={"extends": "config/authors.yaml"})
    assert "in this order: --configfile config/demo.yaml over0.yaml config/authors.yaml over1.yaml" in text


MODULE = """
configfile: "outer.yaml"

module ev:
    snakefile: "Snakefile"
    config: config
    prefix: "sub"

use rule * from ev as ev_*

rule mine:
    input: "sub/results/corpus/en-zh/test/dev.jsonl"
    output: "mine.txt"
    shell: "cp {input} {output}"

rule train:
    default_target: True
    input: "mine.txt", "sub/results/tables/main.tex"
    output: "trained.txt"
    log: "logs/train/log.txt"
    shell: "cat {input} > {output}"
"""


def test_as_a_module_its_jobs_run_below_the_prefix(tmp_path, monkeypatch):
    """Scripts and the audit know its rules by whatever names, and rules of the user's from them."""
    workspace = Workspace(tmp_path, real=True)
    config = overlay(merge([ROOT / "config/demo.yaml"]), CONFIG | {"corpus": {"train": 40, "dev": 4}})
    (tmp_path / "outer.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "outer.smk").write_text(MODULE)
    outer = ("-s", "outer.smk")
    workspace.run(*outer, "--cores", "2", "mine", "--config", "confirm=yes")
    assert (tmp_path / "mine.txt").read_text() == (tmp_path / "sub/results/corpus/en-zh/dev.jsonl").read_text()
    assert not (tmp_path / "results").exists()
    assert not workspace.planned(*outer, "mine")
    planned = by_rule(workspace.planned(*outer, "sub/results/tables/main.tex"))
    assert planned["ev_translate"] == planned["ev_score"] == 2
    (tmp_path / "mine.txt").unlink()
    monkeypatch.chdir(tmp_path)
    audit = Audit(listed(snakefile="outer.smk"))
    assert {one.state for one in audit.cells()} == {MISSING}
    assert [job.rule for job in audit.jobs.all if not job.spec] == ["mine", "train"]


def test_a_rule_of_the_users_loads_no_model_twice(tmp_path):
    fresh = Workspace(tmp_path, "config/demo.yaml", CONFIG)
    (fresh.folder / "mine.smk").write_text(
        'include: "Snakefile"\n'
        "rule mine:\n"
        "    input: [one.scores(R) for one in SETS.all]\n"
        '    output: "mine.txt"\n'
        '    shell: "cat {input} > {output}"\n'
    )
    planned = fresh.planned("-s", "mine.smk", "mine.txt")
    assert by_rule(planned)["translate"] == by_rule(planned)["score"] == 2
    assert max(planned.values()) == 1 and "mine" in planned


def test_a_failed_set_blocks_itself_alone(done):
    """And is planned afterwards with all that follows, though its old result is there."""
    write_scripts(done, FAILS, "translate")
    done.run("--cores", "2", "--keep-going", MAIN, over=OTHERWISE, fails=True)
    assert done.planned(MAIN, over=OTHERWISE).keys() == sets([FAILING]) | {"table main"}
    write_scripts(done, STUB, "translate")
    done.run("--cores", "2", MAIN, over=OTHERWISE)
    assert not done.planned(MAIN, over=OTHERWISE)


def test_fewer_gpus_than_a_training_takes_are_refused_before_anything_runs(paper):
    """Snakemake itself would start the training with as many as the command line allows."""
    text = paper.run("-n", "--resources", "gpu=1", "--", "results/tables/main.tex", fails=True)
    assert "--resources gpu=1: fewer than the 8 that a training takes (`training.processes`)" in text
    assert by_rule(paper.planned("--resources", "gpu=8", "--", "results/tables/main.tex"))["train"] == 9


def test_adapters_that_are_trained_need_no_gpus_of_a_training(tmp_path):
    over = {"matrix": {"backbones": ["llada-8b"], "directions": ["en-zh"], "seeds": [1]}, "tables": {"studies": []}}
    workspace, run = Workspace(tmp_path, "config.yaml", over), "results/en-zh/llada-8b/seed1"
    workspace.finish(f"{run}/adapter/adapter.json")
    planned = by_rule(workspace.planned(f"{run}/matrix/scores.jsonl", "--resources", "gpu=1"))
    assert (planned["train"], planned["translate"]) == (0, 1)


# --- Any texts.


SHELL = """r a'b"c$(touch X)`touch X`;touch X||touch X&touch X>X|touch X #*?[a]!\\~"""
MARKUP = "r {brace} {{0}} %s \\input{x} <b>&amp;\ntouch X\n\t\x1b[31m\u202e"


def test_any_texts_are_planned_as_they_are(tmp_path):
    tiny = {"label": SHELL + MARKUP, "pretraining": None, "folder": MARKUP}
    prompts = {"en-zh": {"prompt": f"{SHELL}{MARKUP}{{src}}"}}
    over = {"results": SHELL, "backbones": {"llada-tiny": tiny}, "directions": prompts}
    printed = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml").dry_run("-p", over=over)
    assert len(re.findall(r"^(?:local)?rule ", printed, re.MULTILINE)) > 30
    assert set(re.findall("Shell command: (.*)", printed)) == {"None"}

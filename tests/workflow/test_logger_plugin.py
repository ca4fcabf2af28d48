"""What the logger plugin prints: a dry run in a screenful, a run job by job."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_entropy_valley as plugin
from entropy_valley.experiment.config import base_files, load_files, params
from entropy_valley.experiment.stats.job_costs import finished_seconds
from entropy_valley.results import Record

ROW = re.compile(r"^(\w+) +(\d+)(?=  |$)", re.MULTILINE)
FAILING = """
if snakemake.wildcards.direction == "en-de":
    open(snakemake.log[0], "w").write("error: the cause\\nbegun\\nerror: no luck\\n")
    raise SystemExit(1)
"""
EV = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}}


def rows(text):
    """Rules with their numbers of jobs."""
    return {rule: int(count) for rule, count in ROW.findall(text)}


def test_the_papers_dry_run_is_a_screenful(paper):
    text = paper.dry_run()
    assert len(text.splitlines()) <= 40 and max(map(len, text.splitlines())) <= 160
    counts = rows(text)
    assert counts.pop("all") == sum(counts.values()) > counts["train"] == 27 + 9 + 4 + 2
    assert 350 < int(re.search(r"^all .* days +(\d+)$", text, re.MULTILINE)[1]) < 440
    text = " ".join(text.split())
    assert f"Downloads: 88.2 GB into {paper.folder}/models (" in text and "--config confirm=yes" in text


def test_a_changed_param_is_named_with_its_values(finished):
    files = [*base_files(finished.folder), *(finished.folder / name for name in finished.config_files())]
    wildcards = {"direction": "en-zh", "backbone": "llada-tiny", "seed": "1", "set": "matrix"}
    spec = json.loads(params.spec_of(load_files(files), params.translation, wildcards))
    rows = "results/demo/en-zh/llada-tiny/seed1/matrix/translations.jsonl"
    header = (finished.folder / rows).with_suffix(".json")
    record = Record("translate", rows, spec, {}, {}, {"cells": []})
    before = header.read_bytes()
    try:
        record.write(header)
        text = finished.dry_run(over=EV)
    finally:
        header.write_bytes(before)
    assert "methods.ev.ratios: [0.55,0.62,0.71,0.8,1.0] → [0.6,0.8,1.0] (1)" in " ".join(text.split())
    assert re.search(r"^score +3 .* input made by other jobs$", text, re.MULTILINE)


def test_what_is_printed_on_request(finished):
    target = "results/demo/en-zh/llada-tiny/seed1/matrix/scores.jsonl"
    assert "Nothing to be done" in finished.dry_run(target)
    text = finished.dry_run(target, "--forcerun", "score")
    assert rows(text) == {"score": 1, "all": 1} and re.search(r"^score .* forced$", text, re.MULTILINE)
    text = finished.dry_run("-p", target, "--forcerun", "score")
    assert "Job stats:" in text and "rule score:" in text and f"output: {target}" in text


def test_a_mistyped_target_has_the_one_that_may_be_meant(paper):
    text = paper.run("-n", "results/tables/man.tex", fails=True)
    assert "no rule makes results/tables/man.tex. Did you mean results/tables/main.tex or " in text
    assert "Did you mean packs?" in paper.run("-n", "pack", fails=True)
    assert plugin.TARGETS in paper.run("--cores", "1", "--", "all", "-n", fails=True)
    listed = paper.run("--list-target-rules").splitlines()
    assert {line.split()[0] for line in listed if not line.startswith("Using ")} == {*plugin.RULES, "train_comet"}


def test_what_is_wrong_with_names_and_files_is_one_line_without_the_functions_that_snakemake_has_called(paper):
    """Also of config files, which Snakemake reads before ours does, and does not name."""
    (paper.folder / "tab.yaml").write_text("matrix:\n\tseeds: [1]\n")
    for words, problem in {
        "results/en-zh/llada-8b/seed1/wmt22.evv-med-T32/scores.jsonl": r"results/\S+: is not a set .* mean ",
        "--configfile tab.yaml": r"tab.yaml: not YAML \(while .* line 2, column 1\)\. Indent with spaces, not .*",
        "--configfile config/demo.yaml all": r"all: file not found\. Check the path\. Write targets ",
    }.items():
        text = paper.run("-n", *words.split(), fails=True)
        assert re.search(f"^error: {problem}", text, re.MULTILINE) and "Traceback" not in text, text


def test_the_command_plan_is_the_dry_run(finished):
    """The same numbers for the same state, here of changed ratios."""
    targets = ("results/demo/tables/main.tex", "pages")
    dry_run = finished.dry_run(*targets, over=EV)
    command = [sys.executable, "-m", "entropy_valley", "plan", *targets, "--configfile", *finished.config_files(EV)]
    planned = subprocess.run(command, cwd=finished.folder, capture_output=True, text=True, check=True).stdout
    assert planned == dry_run.partition("\n")[2] and "\nTimes:     of all as on two quiet cores\n" in planned
    assert rows(planned).keys() >= {"translate", "score", "table", "page"}


def test_a_run_names_each_job_that_ended_and_the_log_of_one_that_failed(paper):
    script = paper.folder / "workflow/scripts/corpus.py"
    script.write_text(FAILING + script.read_text())
    corpora = [f"results/corpus/{direction}/corpus.json" for direction in ("en-zh", "en-de")]
    text = paper.run("--cores", "1", "--keep-going", *corpora, fails=True)
    assert rows(text) == {"fetch_dataset": 2, "corpus": 2, "total": 4} and "output:" not in text
    assert re.search(
        r"^\[[\d:]+\] failed: corpus/en-de; its log: results/logs/corpus/en-de.log\n"
        r"    error: the cause\n    begun\n    error: no luck$",
        text,
        re.MULTILINE,
    )
    for line in ("begins: corpus/en-zh", r"done: corpus/en-zh \(\d of 4 jobs\)"):
        assert re.search(rf"^\[[\d:]+\] {line}$", text, re.MULTILINE)
    assert text.rstrip().endswith("\nFailed: corpus/en-de: results/logs/corpus/en-de.log: the cause")
    assert finished_seconds(paper.folder / "results/benchmarks").keys() == {"corpus/en-zh"}


def test_why_a_run_ended_is_its_last_line(tmp_path, monkeypatch):
    """Of a job that dies at once, the log of an earlier run explains nothing; after SIGTERM nothing has failed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("error: of yesterday\n")
    os.utime("a.log", (1, 1))
    run = plugin.Screen(show_logs=True)
    asked = SimpleNamespace(getMessage=lambda: "Will exit after finishing currently running jobs (scheduler).")
    last = ("WorkflowError", f"WorkflowError:\n{plugin.INCOMPLETE}.")
    failed = {"jobid": 1, "rule_name": "train", "rule_msg": "", "log": ["a.log"], "getMessage": lambda: ""}
    failed = SimpleNamespace(event=LogEvent.JOB_ERROR, **failed)
    assert list(run.lines(asked)) == [asked.getMessage()] and list(run.error(*last)) == [plugin.STOPPED]
    assert [line[11:] for line in run.lines(failed)] == ["failed: train; its log: none"]
    assert list(run.error(*last)) == ["Failed: train"]
    (tmp_path / "a.log").write_text("error: of today\n")
    assert len(list(run.lines(failed))) == 2
    assert list(run.error(*last)) == ["Failed: train: a.log: of today"]


def test_an_error_of_its_own_breaks_no_dry_run(paper):
    with (paper.folder / "Snakefile").open("a") as snakefile:
        snakefile.write("\n\nsnapshot.running = (0, [])\n")
    text = paper.dry_run("results/corpus/en-de/test/wmt22.jsonl")
    assert "No hours and cells: AttributeError" in text and rows(text) == {"testset": 1, "total": 1}

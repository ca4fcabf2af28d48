"""The smallest demo, from nothing to tables and figures, with every job doing its work; then a wider grid."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from no_network import NoNetwork
from workspace import ROOT, Retraining, Workspace

from entropy_valley import cli, files
from entropy_valley.experiment import base_files, load_files
from entropy_valley.provenance import ENDING

pytestmark = pytest.mark.slow

CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
RUN = "en-zh.llada-tiny.seed1"
CELL = f"{RUN}.grammar.ev"
CELL_FOLDER = "en-zh/llada-tiny/seed1/grammar"
DOCUMENT = f"results/smallest/report.{'pdf' if shutil.which('pdflatex') else 'tex'}"


@pytest.fixture(scope="module")
def no_network(tmp_path_factory):
    return NoNetwork(tmp_path_factory.mktemp("hook") / "site")


@pytest.fixture(scope="module")
def demo(tmp_path_factory, no_network):
    workspace = Workspace(tmp_path_factory.mktemp("demo"), *CONFIGS, real=True)
    workspace.said = workspace.run("--cores", "2", "all", DOCUMENT, "pages", environment=no_network.environment)
    return workspace


@pytest.fixture
def entropy_valley(demo, monkeypatch, capsys):
    """What the command of this name prints, run in this process in the demo's folder."""

    def run(*arguments):
        monkeypatch.chdir(demo.folder)
        monkeypatch.setattr(sys, "argv", ["entropy-valley", *arguments])
        cli.main()
        return capsys.readouterr().out

    return run


def results_of(demo, job):
    """How many results the last job with this log asked for, found in the store, and computed itself."""
    *_, log = sorted((demo.folder / "results/smallest/logs").glob(f"{job}*.log"))
    line = re.search(r"(\d+) results asked for, (\d+) shared, (\d+) computed", log.read_text())
    return tuple(map(int, line.groups()))


def test_tables_and_figures_are_there(demo):
    results = demo.folder / "results/smallest"
    there = [path for part in ("tables", "figures") for path in (results / part).iterdir()]
    names = {path.name for path in there if not path.name.endswith(ENDING)}
    made = ("main", "crossbb", "crossbb_bleu", "full_significance", "dissociation", "cases")
    made += ("ar_reference", "dream_instruct")
    made += ("coverage", "faithfulness_summary", "failure_buckets", "corpus", "hyperparams", "prompts", "cost")
    tables = {f"{name}.{ending}" for name in made for ending in ("tex", "float.tex", "md", "html", "csv")}
    drawn = ("hero", "method", "crossbb", "dissociation", "cases")
    figures = {f"{name}.{ending}" for name in drawn for ending in ("pdf", "png", "csv")}
    page = {f"paper_comparison.{ending}" for ending in ("html", "md", "csv")}
    assert names == tables | figures | page
    document = (results / "report.tex").read_text()
    assert (demo.folder / DOCUMENT).is_file() and document.index("hero.pdf") < document.index("main.float.tex")
    with open(results / "tables/main.csv", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"oracle", "ratio", "ratio_eos", "ev"}


def test_the_run_has_printed_a_screenful(demo):
    said = demo.said.splitlines()
    assert len(said) < 80 and max(map(len, said)) < 200
    assert sum(" steps (" in line for line in said) <= 25
    jobs = r"Warning|pkg_resources|Finished jobid|^(local)?rule \w+:|Cannot restore"
    assert not re.search(jobs, demo.said, re.MULTILINE)


def test_without_downloads_nothing_asks_for_the_network(demo, no_network):
    for script in ("corpus", "pretrain", "train_comet", "train", "inference", "decode", "score", "report"):
        assert no_network.watched(f"workflow/scripts/{script}.py"), script
    assert not no_network.refused
    asking = [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"]
    subprocess.run(asking, env=os.environ | no_network.environment, stderr=subprocess.DEVNULL)
    assert re.match(r"socket\.\w+ 192\.0\.2\.1: ", no_network.refused[0])


def test_the_terminal_shows_the_main_table_and_the_audit(entropy_valley):
    assert "Entropy-Valley" in entropy_valley("show", "results/smallest/tables/main.md")
    audit = entropy_valley("audit", "--configfile", "config.yaml", *CONFIGS)
    assert "11 cells: 11 done, 0 missing" in audit
    total = entropy_valley("ledger", "results/smallest").splitlines()[-1]
    assert re.match(r"24 jobs: \d+ results asked for, \d+ shared", total), total


def test_translate_gives_the_workflows_translations(demo, entropy_valley, monkeypatch):
    """Every sentence of the test set, with what the config says; and the adapter has its card."""
    results = demo.folder / "results/smallest"
    pairs = files.read_jsonl(results / "corpus/en-zh/test/grammar.jsonl")
    lines = "".join(f"{pair['source']}\n" for pair in pairs).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    command = ("translate", "--configfile", *CONFIGS, "--direction", "en-zh", "--length", "ev", "ratio", "--jsonl")
    rows = [json.loads(line) for line in entropy_valley(*command).splitlines()]
    for method in ("ev", "ratio"):
        made = files.read_jsonl(next((results / CELL_FOLDER / method).glob("*/hypotheses.jsonl")))
        found = [row for row in rows if row["method"] == method]
        assert [row["hypothesis"] for row in found] == [row["hypothesis"] for row in made]
        assert [row["logprob"] for row in found] == [row["logprob"] for row in made]
    assert "--direction en-zh" in (results / "en-zh/llada-tiny/seed1/adapter/README.md").read_text(encoding="utf-8")


def test_every_job_has_a_log_and_a_line_of_what_it_took(demo):
    results = demo.folder / "results/smallest"
    logs = {path.relative_to(results / "logs").with_suffix("") for path in (results / "logs").rglob("*.log")}
    planned = demo.planned("--forceall", "all", DOCUMENT, "pages", last=True)
    assert len(logs) == sum(planned.values()) - 2  # `all` and `pages` do nothing
    took = {path.relative_to(results / "benchmarks"): path for path in (results / "benchmarks").rglob("*")}
    assert {name.with_suffix("") for name, path in took.items() if path.is_file()} == logs
    with open(results / "benchmarks/train/en-zh.llada-tiny.seed1.tsv", newline="") as file:
        (training,) = csv.DictReader(file, delimiter="\t")
    assert training["status"] == "0" and float(training["s"]) > 0 and float(training["max_rss_mb"]) > 100


def test_the_report_has_every_table_as_a_page_with_its_caption(demo):
    demo.run("--report", "report.zip")
    with zipfile.ZipFile(demo.folder / "report.zip") as file:
        names, text = file.namelist(), file.read("report/report.html").decode()
    results = json.loads(re.search(r"var results = (\{.*?\});\n", text)[1])
    main, corpus = (results[f"results/smallest/tables/{name}.html"] for name in ("main", "corpus"))
    assert (main["labels"], main["mime_type"]) == ({"name": "main", "as": "page"}, "text/html")
    assert f"report/{main['data_uri']}" in names and f"results/smallest/{DOCUMENT.split('/')[-1]}" in {
        *results,
        DOCUMENT,
    }
    categories = json.loads(re.search(r"var categories = (\{.*?\});\n", text)[1])
    assert "results/smallest/tables/main.html" in categories["Tables"]["Of the paper"]
    assert "results/smallest/tables/corpus.html" in categories["Tables"]["Ours"]
    assert "|y|/|x|" in corpus["caption"] or corpus["caption"]
    assert len(main["job_properties"]["params"]) < 1000  # no params as JSON


def test_a_second_run_does_nothing_and_a_wider_grid_decodes_its_new_canvases(demo):
    assert not demo.planned()
    probed, shared, _ = results_of(demo, f"canvas/{CELL}")
    assert probed == shared
    ratios = load_files([*base_files(ROOT), *(ROOT / name for name in CONFIGS)]).length_methods.ev.ratios["en-zh"]
    wider = {"length_methods": {"ev": {"ratios": {"en-zh": [*ratios, 1.5 * max(ratios)]}}}}
    done = {path: path.stat().st_mtime_ns for path in demo.folder.glob("results/smallest/en-zh/*/seed1/adapter/*")}
    demo.run("--cores", "2", f"results/smallest/{CELL_FOLDER}/ev/med-T8/hypotheses.jsonl", over=wider)
    asked, shared, _ = results_of(demo, f"canvas/{CELL}")
    new = asked - probed
    assert 0 < new <= 12  # one new length for each sentence
    assert asked == shared  # the job that loads the model has computed it
    _, _, computed = results_of(demo, f"inference/{RUN}")
    assert new <= computed <= 2 * new
    assert done == {path: path.stat().st_mtime_ns for path in done}


def test_from_a_given_adapter_the_same_translations_without_a_training(demo, entropy_valley):
    """An adapter in the released layout, a checkpoint of the user's own: nothing of the first run is looked at."""
    entropy_valley("export", "results/smallest/en-zh/llada-tiny/seed1/adapter", "given")
    translations = f"{CELL_FOLDER}/ratio/med-T8/hypotheses.jsonl"
    over = {
        "results": "results/given",
        "adapters": "released",
        "released": {name: {"en-zh": {1: {"folder": "given"}}} for name in ("llada-tiny", "llama3-tiny")},
        "backbones": {
            name: {"pretraining": None, "folder": f"results/smallest/backbones/{name}"}
            for name in ("llada-tiny", "llama3-tiny", "dream-instruct")
        },
        "instruct": {"backbones": []},
    }
    demo.run("--cores", "2", f"results/given/{translations}", over=over)
    first, again = (demo.folder / "results" / run / translations for run in ("smallest", "given"))
    assert again.read_bytes() == first.read_bytes()
    assert not (demo.folder / "results/given/logs/train").exists()


def test_bad_input_is_one_clear_error_and_leaves_what_is_finished(demo):
    finished = contents(demo.folder / "results/smallest")
    nowhere = {
        "sources": {"nowhere": {"name": "files", "source": "nowhere.en", "target": "nowhere.zh"}},
        "directions": {"en-zh": {"train": "nowhere"}},
    }
    with pytest.raises(AssertionError, match=r"error: nowhere\.en: file not found"):
        demo.run("--cores", "2", "--keep-going", over=nowhere)
    assert contents(demo.folder / "results/smallest") == finished


def test_a_score_that_is_no_number_stops_its_table_and_leaves_the_finished_one(demo):
    score = demo.folder / "results/smallest/en-zh/dream-instruct-plain/seed1/grammar/ratio/med-T8/scores.json"
    before, finished = score.read_text(), contents(demo.folder / "results/smallest")
    score.write_text(json.dumps(json.loads(before) | {"toy_comet": math.nan}))
    try:
        said = demo.run("--cores", "2", "results/smallest/tables/dream_instruct.tex", fails=True)
    finally:
        score.write_text(before)
    *_, error, log = said.splitlines()
    assert (
        error.startswith("table dream_instruct: results/")
        and log == "  log: results/smallest/logs/table/dream_instruct.log"
    )
    assert contents(demo.folder / "results/smallest") == finished


def test_a_killed_retraining_resumes_and_the_old_adapter_stays_until_then(demo):
    """Killed as a lost machine kills: Snakemake and its jobs at once. Backups of an older Snakemake are no obstacle."""
    retraining = Retraining(demo.folder)
    shutil.copytree(retraining.adapter, demo.folder / ".snakemake/backups" / Path(retraining.target).parent)
    process = demo.start("--cores", "1", retraining.target, over=retraining.over)
    retraining.begun(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()  # until the last of its jobs is gone
    assert retraining.is_unfinished()
    demo.run("--cores", "1", "--unlock", over=retraining.over)
    demo.run("--cores", "1", retraining.target, over=retraining.over)
    assert retraining.went_on()


def contents(folder):
    """Every result's bytes; logs, and what is written about the run and for it, are no results."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    of_runs = ("logs", "benchmarks", "work", "params")
    return {name: path.read_bytes() for name, path in found.items() if name.parts[0] not in of_runs}

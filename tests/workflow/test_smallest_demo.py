"""The smallest demo, from nothing to tables and figures, with every job doing its work; then a wider grid."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest
from no_network import NoNetwork
from workspace import ROOT, Retraining, Workspace

from entropy_valley import cli, files, results
from entropy_valley.config import base_files, load_files
from entropy_valley.provenance import ENDING
from entropy_valley.results import System

pytestmark = pytest.mark.slow

CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
RUN = "en-zh.llada-tiny.seed1"
SET = "en-zh/llada-tiny/seed1/matrix"
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


def cell(folder, method):
    """The rows of a method's cell."""
    return results.rows(folder / results.TRANSLATIONS, System("grammar", method, "med", 8))


def test_tables_and_figures_are_there(demo):
    folder = demo.folder / "results/smallest"
    there = [path for part in ("tables", "figures") for path in (folder / part).iterdir()]
    names = {path.name for path in there if not path.name.endswith(ENDING)}
    made = ("main", "crossbb", "crossbb_bleu", "full_significance", "dissociation", "cases")
    made += ("ar_reference", "dream_instruct")
    made += ("coverage", "faithfulness_summary", "failure_buckets", "corpus", "hyperparams", "prompts", "cost")
    tables = {f"{name}.{ending}" for name in made for ending in ("tex", "float.tex", "md", "html", "csv")}
    drawn = ("hero", "method", "crossbb", "dissociation", "cases")
    figures = {f"{name}.{ending}" for name in drawn for ending in ("pdf", "png", "csv")}
    page = {f"paper_comparison.{ending}" for ending in ("html", "md", "csv")}
    assert names == tables | figures | page
    document = (folder / "report.tex").read_text()
    assert (demo.folder / DOCUMENT).is_file() and document.index("hero.pdf") < document.index("main.float.tex")
    with open(folder / "tables/main.csv", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"oracle", "ratio", "ratio_eos", "ev"}


def test_the_run_has_printed_a_screenful(demo):
    said = demo.said.splitlines()
    assert len(said) < 120 and max(map(len, said)) < 250
    assert not re.search(r"Warning|pkg_resources|Finished jobid|^(local)?rule \w+:", demo.said, re.MULTILINE)


def test_without_downloads_nothing_asks_for_the_network(demo, no_network):
    for script in ("corpus", "pretrain", "train_comet", "train", "translate", "score", "report"):
        assert no_network.watched(f".{script}.py"), script
    assert not no_network.refused
    asking = [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"]
    subprocess.run(asking, env=os.environ | no_network.environment, stderr=subprocess.DEVNULL)
    assert re.match(r"socket\.\w+ 192\.0\.2\.1: ", no_network.refused[0])


def test_the_terminal_shows_the_main_table_and_the_audit(entropy_valley):
    assert "Entropy-Valley" in entropy_valley("show", "results/smallest/tables/main.md")
    audit = entropy_valley("audit", "--configfile", "config.yaml", *CONFIGS)
    assert "11 cells: 11 done, 0 missing" in audit


def test_translate_gives_the_workflows_translations(demo, entropy_valley, monkeypatch):
    """Every sentence of the test set, with what the config says; and the adapter has its card."""
    folder = demo.folder / "results/smallest"
    pairs = files.read_jsonl(folder / "corpus/en-zh/test/grammar.jsonl")
    lines = "".join(f"{pair['source']}\n" for pair in pairs).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    command = ("translate", "--configfile", *CONFIGS, "--direction", "en-zh", "--length", "ev", "ratio", "--jsonl")
    rows = [json.loads(line) for line in entropy_valley(*command).splitlines()]
    for method in ("ev", "ratio"):
        made = cell(folder / SET, method)
        found = [row for row in rows if row["method"] == method]
        assert [row["hypothesis"] for row in found] == [row["hypothesis"] for row in made]
        assert [row["logprob"] for row in found] == [row["logprob"] for row in made]
    assert "--direction en-zh" in (folder / "en-zh/llada-tiny/seed1/adapter/README.md").read_text(encoding="utf-8")


def test_every_job_has_a_log_and_long_ones_the_time_that_they_took(demo):
    folder = demo.folder / "results/smallest"
    logs = {path.relative_to(folder / "logs").with_suffix("") for path in (folder / "logs").rglob("*.log")}
    planned = demo.planned("--forceall", "all", DOCUMENT, "pages", last=True)
    assert len(logs) == sum(planned.values()) - 2  # `all` and `pages` do nothing
    took = {path.relative_to(folder / "benchmarks").with_suffix("") for path in (folder / "benchmarks").rglob("*.tsv")}
    assert took < logs and {name.parts[0] for name in took} >= {"pretrain", "train", "translate", "score"}
    with open(folder / "benchmarks/train/en-zh.llada-tiny.seed1.tsv", newline="") as file:
        (training,) = csv.DictReader(file, delimiter="\t")
    assert float(training["s"]) > 0


def test_the_report_has_every_table_as_a_page_with_its_caption(demo):
    demo.run("--report", "report.zip", "all")
    with zipfile.ZipFile(demo.folder / "report.zip") as file:
        names, text = file.namelist(), file.read("report/report.html").decode()
    shown = json.loads(re.search(r"var results = (\{.*?\});\n", text)[1])
    main, corpus = (shown[f"results/smallest/tables/{name}.html"] for name in ("main", "corpus"))
    assert (main["labels"], main["mime_type"]) == ({"name": "main", "as": "page"}, "text/html")
    assert f"report/{main['data_uri']}" in names
    categories = json.loads(re.search(r"var categories = (\{.*?\});\n", text)[1])
    assert "results/smallest/tables/main.html" in categories["Tables"]["Of the paper"]
    assert "results/smallest/tables/corpus.html" in categories["Tables"]["Ours"]
    assert corpus["caption"]
    rules = json.loads(re.search(r"var rules = (\{.*?\});\n", text)[1])
    assert {"train", "translate", "score"} <= rules.keys()  # the stages on GPUs are in its graph


def test_a_second_run_does_nothing_and_a_wider_grid_decodes_its_new_canvases(demo):
    """The whole set is repeated, and all but EV's new canvases comes from the store."""
    assert not demo.planned()
    before = {method: cell(demo.folder / "results/smallest" / SET, method) for method in ("oracle", "ratio")}
    ratios = load_files([*base_files(ROOT), *(ROOT / name for name in CONFIGS)]).length_methods.ev.ratios["en-zh"]
    wider = {"length_methods": {"ev": {"ratios": {"en-zh": [*ratios, 1.5 * max(ratios)]}}}}
    done = {path: path.stat().st_mtime_ns for path in demo.folder.glob("results/smallest/en-zh/*/seed1/adapter/*")}
    demo.run("--cores", "2", f"results/smallest/{SET}/translations.jsonl", over=wider)
    asked, shared, computed = results_of(demo, f"translate/{RUN}.matrix")
    assert 0 < computed <= 24 and shared == asked - computed  # a new length for each of 12 sentences, and its text
    assert before == {method: cell(demo.folder / "results/smallest" / SET, method) for method in before}
    assert done == {path: path.stat().st_mtime_ns for path in done}
    demo.run("--cores", "2")  # and back again
    assert results_of(demo, f"translate/{RUN}.matrix")[2] == 0


def test_from_a_given_adapter_the_same_translations_without_a_training(demo, entropy_valley):
    """An adapter in the released layout, a checkpoint of the user's own: nothing of the first run is looked at."""
    entropy_valley("export", "results/smallest/en-zh/llada-tiny/seed1/adapter", "given")
    one = "en-zh/llada-tiny/seed1/grammar.ratio-med-T8"
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
    demo.run("--cores", "2", f"results/given/{one}/translations.jsonl", over=over)
    assert cell(demo.folder / "results/given" / one, "ratio") == cell(demo.folder / "results/smallest" / SET, "ratio")
    assert not (demo.folder / "results/given/logs/train").exists()


def test_bad_input_is_one_clear_error_and_leaves_what_is_finished(demo):
    finished = contents(demo.folder / "results/smallest")
    nowhere = {
        "results": "results/nowhere",  # of a job that fails, Snakemake removes the outputs
        "sources": {"nowhere": {"name": "files", "source": "nowhere.en", "target": "nowhere.zh"}},
        "directions": {"en-zh": {"train": "nowhere"}},
    }
    with pytest.raises(AssertionError, match=r"error: nowhere\.en: file not found"):
        demo.run("--cores", "2", "--keep-going", over=nowhere)
    assert contents(demo.folder / "results/smallest") == finished


def test_a_score_that_is_no_number_stops_its_table(demo):
    header = demo.folder / "results/smallest/en-zh/dream-instruct-plain/seed1/instruct/scores.json"
    before, finished = header.read_text(), contents(demo.folder / "results/smallest")
    header.write_text(re.sub(r'("toy_comet": )[\d.-]+', r"\1NaN", before))
    try:
        said = demo.run("--cores", "2", "results/smallest/tables/dream_instruct.tex", fails=True)
    finally:
        header.write_text(before)
    assert "table dream_instruct" in said and "toy_comet is nan, not a finite number" in said
    demo.run("--cores", "2")
    assert contents(demo.folder / "results/smallest") == finished


def test_a_killed_retraining_resumes_and_the_old_adapter_stays_until_then(demo):
    """Killed as a lost machine kills: Snakemake and its jobs at once."""
    retraining = Retraining(demo.folder)
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
    of_runs = ("logs", "benchmarks", "work", "audit")
    return {name: path.read_bytes() for name, path in found.items() if name.parts[0] not in of_runs}

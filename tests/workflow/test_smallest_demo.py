"""The smallest demo from nothing to tables and figures, every job doing its work; a wider grid."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from forging import changed, sealed
from workspace import ROOT, Workspace

from entropy_valley import files, results
from entropy_valley.experiment import cli, verification
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.runs import JOBS, jobs
from entropy_valley.experiment.tables import live
from entropy_valley.experiment.verification import again
from entropy_valley.results import ENDING, System

pytestmark = pytest.mark.slow

CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
# Without other backbones, which have no rules of their own: nightly has them. With a few sentences more.
DEMO = {"autoregressive": {"backbones": []}, "instruct": {"backbones": []}, "corpus": {"test_limit": 16}}
RUN_NAME = "en-zh.llada-tiny.seed1"
SET = "en-zh/llada-tiny/seed1/matrix"
DOCUMENT = f"results/smallest/report.{'pdf' if shutil.which('pdflatex') else 'tex'}"


# No Python process of a run reaches the network: a sitecustomize.py refuses it, and notes who tried.
HOOK = """
import os, socket, sys

FOLDER, HERE = os.path.dirname(__file__), ("", None, "localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname())

def note(file, line):
    with open(f"{FOLDER}/{file}", "a") as notes:
        notes.write(f"{line}: {' '.join(sys.orig_argv)}\\n")

def refuse(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        host = arguments[1][0] if isinstance(arguments[1], tuple) else None  # else a local socket's path
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if (host.decode() if isinstance(host, bytes) else host) not in HERE:
        note("refused", f"{event} {host}")
        raise OSError(f"the network is asked for: {event} {host}")

note("watched", "started")
sys.addaudithook(refuse)
"""


class NoNetwork:
    """The hook in a folder, and what it has seen."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(HOOK)
        self._folder = folder
        self.environment = {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}

    def watched(self, script: str) -> bool:
        """Whether a process of this script ran with the hook."""
        return script in (self._folder / "watched").read_text()

    @property
    def refused(self) -> list[str]:
        """What asked for the network, and the command of its process."""
        notes = self._folder / "refused"
        return notes.read_text().splitlines() if notes.exists() else []


@pytest.fixture(scope="module")
def no_network(tmp_path_factory):
    return NoNetwork(tmp_path_factory.mktemp("hook") / "site")


@pytest.fixture(scope="module")
def demo(tmp_path_factory, no_network):
    workspace = Workspace(tmp_path_factory.mktemp("demo"), *CONFIGS, DEMO, real=True)
    process = workspace.start("--cores", "2", "all", DOCUMENT, "pages", "live", environment=no_network.environment)
    workspace.printed, _ = process.communicate()
    assert process.returncode == 0, workspace.printed
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
    paths = [path for part in ("tables", "figures") for path in (folder / part).iterdir()]
    tables = ("main", "full_significance", "dissociation", "cases", "corpus")
    tables += ("coverage", "faithfulness_summary", "failure_buckets", "hyperparams", "prompts", "cost")
    names = {f"{name}.{ending}" for name in tables for ending in ("tex", "float.tex", "md", "html", "csv")}
    figures = ("hero", "method", "dissociation", "cases")
    names |= {f"{name}.{ending}" for name in figures for ending in ("pdf", "svg", "png", "csv")}
    names |= {f"paper_comparison.{ending}" for ending in ("html", "md", "csv")}
    assert names == {path.name for path in paths if not path.name.endswith(ENDING)}
    assert (folder / live.NAME).stat().st_size > 1e5
    document = (folder / "report.tex").read_text()
    assert (demo.folder / DOCUMENT).is_file() and document.index("hero.pdf") < document.index("main.float.tex")
    with open(folder / "tables/main.csv", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"oracle", "ratio", "ratio_eos", "ev"}


def test_the_run_has_printed_a_screenful(demo):
    lines = demo.printed.splitlines()
    assert len(lines) < 120 and max(map(len, lines)) < 250
    assert not re.search(r"Warning|pkg_resources|Finished jobid|^(local)?rule \w+:", demo.printed, re.MULTILINE)


def test_without_downloads_nothing_asks_for_the_network(demo, no_network):
    for script in ("corpus", "demo_models", "train", "translate", "score", "report"):
        assert no_network.watched(f".{script}.py"), script
    assert not no_network.refused
    asking = [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"]
    subprocess.run(asking, env=os.environ | no_network.environment, stderr=subprocess.DEVNULL)
    assert re.match(r"socket\.\w+ 192\.0\.2\.1: ", no_network.refused[0])


def test_the_terminal_shows_the_main_table_and_the_audit(demo, entropy_valley):
    tables = entropy_valley("show", *(f"results/smallest/tables/{name}.md" for name in ("main", "corpus")))
    assert "gap_closure_runs" in tables and "length_ratio_median" in tables
    audit = entropy_valley("audit", "--configfile", "config.yaml", *demo.config_files())
    assert re.search(r"\b(\d+) cells: \1 done, 0 missing", audit)
    assert "stale:" not in audit


# --- a job on another machine: it gets what it declares, and nothing else


@pytest.fixture(scope="module")
def listed(demo, tmp_path_factory):
    """The jobs of the run, as a dry run tells them."""
    out = tmp_path_factory.mktemp("listed") / "jobs.json"
    demo.dry_run("--forceall", environment={JOBS: str(out)})
    return jobs.of_dry_run(out.read_bytes())


def test_a_job_needs_only_the_files_that_it_declares(demo, listed, tmp_path):
    """Nightly has the other rules, in a storage; a report refuses to read other files."""
    result = f"{SET}/translations.jsonl"
    job = listed.by_output[f"results/smallest/{result}"]
    workspace = Workspace(tmp_path, *CONFIGS, DEMO, real=True)
    for path in job.inputs:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(demo.folder / path, tmp_path / path)
    workspace.run(job.outputs[0], "--cores", "1", "--allowed-rules", job.rule)
    made = [path.relative_to(tmp_path) for path in (tmp_path / job.outputs[0]).parent.iterdir() if path.is_file()]
    assert {*map(str, made)} - {*job.inputs} == {*job.outputs}
    assert (tmp_path / "results/smallest" / result).read_bytes() == (
        demo.folder / "results/smallest" / result
    ).read_bytes()


# --- verify, before any test that changes the results: what needs the models of the run. test_verification.py has more


def test_verify_finds_everything_that_it_can_check_the_same(demo, entropy_valley):
    printed = entropy_valley("verify", "results/smallest", "--translate", "1")
    same = {
        name.strip(): int(count.replace(",", ""))
        for name, count in re.findall(r"^(.+?) {2,}([\d,]+) +0 ", printed, re.M)
    }
    assert same["all"] > 3500 and len(printed.splitlines()) < 60
    assert same["texts decoded again"] == 1
    wanted = ("texts", "token counts", "canvases", "BLEU and chrF", "COMET", "tables/main", "figures/hero", "live.html")
    assert all(same[name] for name in wanted)


@pytest.fixture
def copied(demo, tmp_path):
    unread = shutil.ignore_patterns("store", "work", "logs", ".*", "pages", "live.*")
    return Path(shutil.copytree(demo.folder / "results/smallest", tmp_path / "copy", ignore=unread))


EV = {"method": "ev"}
ROWS, SCORES = f"{SET}/translations.jsonl", f"{SET}/scores.jsonl"
CHANGES = {  # file, row, change; then what the lines about it say
    "score": (
        (SCORES, EV, lambda row: row | {"toy_comet": round(row["toy_comet"] + 0.1, 6)}),
        [
            f"{SCORES}: line 1, toy_comet: ",
            "toy_comet of grammar ev med-T8, the mean of its rows: ",
            "tables/main.csv: ",
        ],
    ),
    "tokens": ((ROWS, EV, lambda row: row | {"tokens": [*row["tokens"][1:], 300]}), ["line 1, hypothesis: "]),
    "token counts": (
        ("en-zh/llada-tiny/tokens/grammar.jsonl", {"id": "test-000001"}, lambda row: row | {"target_tokens": 1}),
        ["tokens of test-000001: "],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_verify_names_what_was_changed_though_all_digests_were_made_to_fit(copied, name):
    (file, row, change), expected = CHANGES[name]
    changed(copied / file, change, **row)
    sealed(copied, "results/smallest")
    _, report = verification.verify(copied)
    lines = [line for _, line in report.differences]
    assert all(any(part in line for line in lines) for part in expected)
    assert not any("digest in" in line for line in lines)


def test_verify_finds_a_forged_text_by_decoding_it_again(copied):
    """Its token ids, its text and its scores fit together, and all digests were made to fit."""
    folder = verification.Folder(copied, verification.Report())
    drawn, row = next(again.drawn(folder, verification.Report(), 1))
    tokens = [*row["tokens"][:-1], 300]
    text = folder.prompt(drawn.run[1]).text(tokens)
    key = {**drawn.system._asdict(), "id": row["id"]}
    changed(copied / drawn.file, lambda row: row | {"tokens": tokens, "hypothesis": text}, **key)
    sealed(copied, "results/smallest")
    report = verification.Report()
    again.check(verification.Folder(copied, report), report, 1, "cpu")
    (found,) = [line for part, line in report.differences if part == again.PART]
    assert found.startswith(f"{drawn.file}: line {row['line']}, tokens (preferred by ")


def test_translate_gives_the_workflows_translations(demo, entropy_valley, monkeypatch):
    """Every sentence of the test set, with what the config says; and the adapter has its card."""
    folder = demo.folder / "results/smallest"
    pairs = files.read_jsonl(folder / "corpus/en-zh/test/grammar.jsonl")
    lines = "".join(f"{pair['source']}\n" for pair in pairs).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    command = ("translate", "--configfile", *CONFIGS, "--direction", "en-zh", "--length", "ev", "ratio", "--jsonl")
    rows = [json.loads(line) for line in entropy_valley(*command).splitlines()]
    for method in ("ev", "ratio"):
        expected = cell(folder / SET, method)
        printed = [row for row in rows if row["method"] == method]
        assert [row["hypothesis"] for row in printed] == [row["hypothesis"] for row in expected]
        assert [row["logprob"] for row in printed] == [row["logprob"] for row in expected]
    assert "--direction en-zh" in (folder / "en-zh/llada-tiny/seed1/adapter/README.md").read_text(encoding="utf-8")


def test_every_job_has_a_log_and_long_ones_the_time_that_they_took(demo):
    folder = demo.folder / "results/smallest"
    logs = {path.relative_to(folder / "logs").with_suffix("") for path in (folder / "logs").rglob("*.log")}
    planned = demo.planned("--forceall", "all", DOCUMENT, "pages", "live")
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
    wanted, shared, computed = results_of(demo, f"translate/{RUN_NAME}.matrix")
    assert 0 < computed <= 32 and shared == wanted - computed  # a new length for each of 16 sentences, and its text
    assert before == {method: cell(demo.folder / "results/smallest" / SET, method) for method in before}
    assert done == {path: path.stat().st_mtime_ns for path in done}


def test_from_a_given_adapter_the_same_translations_without_a_training(demo, entropy_valley):
    """An adapter in the released layout, a checkpoint of the user's own: nothing of the first run is looked at."""
    entropy_valley("export", "results/smallest/en-zh/llada-tiny/seed1/adapter", "given")
    one = "en-zh/llada-tiny/seed1/grammar.ratio-med-T8"
    over = {
        "results": "results/given",
        "adapters": "released",
        "released": {"llada-tiny": {"en-zh": {1: {"folder": "given"}}}},
        "backbones": {
            "llada-tiny": {"pretraining": None, "folder": "results/smallest/backbones/llada-tiny/seed1"},
        },
    }
    demo.run("--cores", "2", f"results/given/{one}/translations.jsonl", over=over)
    assert cell(demo.folder / "results/given" / one, "ratio") == cell(demo.folder / "results/smallest" / SET, "ratio")
    assert not (demo.folder / "results/given/logs/train").exists()

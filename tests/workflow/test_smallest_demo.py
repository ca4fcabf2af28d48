"""The smallest demo from nothing to a table, a figure and pages, every job doing its work; a wider grid."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forging import changed, sealed
from workspace import ROOT, Workspace

from entropy_valley import results
from entropy_valley.experiment import cli, tables, verification
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.tables import live
from entropy_valley.experiment.verification import again, products
from entropy_valley.results import ENDING, System

pytestmark = pytest.mark.slow

CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
# Without other backbones, which have no rules of their own: nightly has them. With a few sentences more.
DEMO = {"autoregressive": {"backbones": []}, "instruct": {"backbones": []}, "corpus": {"test_limit": 16}}
RUN_NAME = "en-zh.llada-tiny.seed1"
SET = "en-zh/llada-tiny/seed1/matrix"
MADE = [f"results/smallest/{name}" for name in ("tables/main.tex", "figures/hero.pdf")]


# No Python process of a run reaches the network: a sitecustomize.py refuses it, and notes who tried.
HOOK = """
import os, socket, sys

HERE = ("", None, "localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname())

def refuse(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        host = arguments[1][0] if isinstance(arguments[1], tuple) else None  # else a local socket's path
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if (host.decode() if isinstance(host, bytes) else host) not in HERE:
        with open(os.path.dirname(__file__) + "/refused", "a") as notes:
            notes.write(f"{event} {host}: {' '.join(sys.orig_argv)}\\n")
        raise OSError(f"the network is asked for: {event} {host}")

sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def hook(tmp_path_factory):
    """A folder with it: the environment in which it is imported, and the file of its notes."""
    folder = tmp_path_factory.mktemp("hook")
    (folder / "sitecustomize.py").write_text(HOOK)
    return {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}, folder / "refused"


@pytest.fixture(scope="module")
def demo(tmp_path_factory, hook):
    """With what all tables and figures read; all but one of each are made by ``verify``, in this process."""
    workspace = Workspace(tmp_path_factory.mktemp("demo"), *CONFIGS, DEMO, real=True)
    files = [*base_files(ROOT), *(workspace.folder / name for name in workspace.config_files())]
    reports = [report for report in tables.configured(load_files(files, tables.problems)).values() if report.ready]
    read = {path for report in reports if report.rule != "comparison" for path in report.inputs()}
    workspace.targets = [*sorted(read), *MADE, "pages", "live"]
    process = workspace.start("--cores", "2", *workspace.targets, environment=hook[0])
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
    return results.systems(folder / results.TRANSLATIONS)[System("grammar", method, "med", 8)]


def test_a_table_and_a_figure_are_there(demo):
    folder = demo.folder / "results/smallest"
    paths = [path for part in ("tables", "figures") for path in (folder / part).iterdir()]
    names = {f"main.{ending}" for ending in ("tex", "float.tex", "md", "html", "csv")}
    names |= {f"hero.{ending}" for ending in ("pdf", "svg", "png", "csv")}
    assert names == {path.name for path in paths if not path.name.endswith(ENDING)}
    assert (folder / live.NAME).stat().st_size > 1e5
    with open(folder / "tables/main.csv", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"oracle", "ratio", "ratio_eos", "ev"}


def test_the_run_has_printed_a_screenful(demo):
    lines = demo.printed.splitlines()
    assert len(lines) < 120 and max(map(len, lines)) < 250
    assert not re.search(r"Warning|pkg_resources|Finished jobid|^(local)?rule \w+:", demo.printed, re.MULTILINE)


def test_without_downloads_nothing_asks_for_the_network(demo, hook):
    environment, refused = hook
    assert not refused.exists()
    asking = [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"]
    subprocess.run(asking, env=os.environ | environment, stderr=subprocess.DEVNULL)
    assert re.match(r"socket\.\w+ 192\.0\.2\.1: ", refused.read_text())


def test_the_terminal_shows_the_main_table_and_the_audit(demo, entropy_valley):
    assert "gap_closure_runs" in entropy_valley("show", "results/smallest/tables/main.md")
    audit = entropy_valley("audit", "--configfile", "config.yaml", *demo.config_files())
    assert re.search(r"\b(\d+) cells: \1 done, 0 missing", audit)
    assert "stale:" not in audit


# --- verify, before any test that changes the results: what needs the models of the run. test_verification.py has more


def test_verify_finds_everything_that_it_can_check_the_same(demo):
    """All tables and figures can be made of what is there."""
    report = verification.verify(demo.folder / "results/smallest", sentences=1)
    assert [line for _, line in report.differences if ": file not found. " not in line] == []
    assert report.same.total() > 1000 and report.same["texts decoded again"] == 1
    wanted = ("texts", "token counts", "canvases", "BLEU and chrF", "COMET", "tables/main", "figures/hero", "live.html")
    assert all(report.same[part] for part in wanted)


@pytest.fixture
def copied(demo, tmp_path):
    """Without tables, figures and COMET, which take most of the time."""
    unread = shutil.ignore_patterns("store", "work", "logs", ".*", "pages", "live.*", "tables", "figures", "comet")
    return Path(shutil.copytree(demo.folder / "results/smallest", tmp_path / "copy", ignore=unread))


def test_verify_names_tokens_that_are_not_the_texts_though_all_digests_were_made_to_fit(copied, monkeypatch):
    monkeypatch.setattr(products, "_products", lambda *_: [])
    change = {"tokens": [300]}
    changed(copied / f"{SET}/translations.jsonl", lambda row: row | change, method="ev")
    counts = copied / "en-zh/llada-tiny/tokens/grammar.jsonl"
    changed(counts, lambda row: row | {"target_tokens": 1}, id="test-000001")
    sealed(copied, "results/smallest")
    lines = [line for _, line in verification.verify(copied).differences]
    assert all(any(part in line for line in lines) for part in ("line 1, hypothesis: ", "tokens of test-000001: "))
    assert not any("digest in" in line for line in lines)


def test_verify_finds_a_forged_text_by_decoding_it_again(copied):
    """Its token ids, its text and its scores fit together, and all digests were made to fit."""
    folder = verification.Folder(copied, verification.Report())
    drawn, row = next(again.drawn(folder, verification.Report(), 1))
    tokens = [*row["tokens"][:-1], 300]
    text = folder.prompt(drawn.backbone).text(tokens)
    key = {**drawn.system._asdict(), "id": row["id"]}
    changed(copied / drawn.file, lambda row: row | {"tokens": tokens, "hypothesis": text}, **key)
    sealed(copied, "results/smallest")
    report = verification.Report()
    again.check(verification.Folder(copied, report), report, 1, "cpu")
    (found,) = [line for part, line in report.differences if part == again.PART]
    assert found.startswith(f"{drawn.file}: line {row['line']}, tokens (preferred by ")


def test_a_second_run_does_nothing_and_a_wider_grid_decodes_its_new_canvases(demo):
    """The whole set is repeated, and all but EV's new canvases comes from the store."""
    assert not demo.planned(*demo.targets)
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
        "backbones": {"llada-tiny": {"pretraining": None, "folder": "results/smallest/backbones/llada-tiny/seed1"}},
    }
    demo.run("--cores", "2", f"results/given/{one}/translations.jsonl", over=over)
    assert cell(demo.folder / "results/given" / one, "ratio") == cell(demo.folder / "results/smallest" / SET, "ratio")
    assert not (demo.folder / "results/given/logs/train").exists()

"""The smallest demo from nothing to tables and figures, every job doing its work; a wider grid; real text."""

from __future__ import annotations

import contextlib
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
from workspace import ROOT, Workspace

from entropy_valley import cli, files, results, verification
from entropy_valley.config import base_files, load_files
from entropy_valley.config.matrix import Cell, Run
from entropy_valley.errors import InputError
from entropy_valley.results import ENDING, System
from entropy_valley.runs import jobs
from entropy_valley.tables import live
from entropy_valley.verification import again

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
    names |= {f"{name}.{ending}" for name in figures for ending in ("pdf", "png", "csv")}
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
    assert "Entropy-Valley" in tables and "Pairs read" in tables
    audit = entropy_valley("audit", "--configfile", "config.yaml", *demo.config_files())
    assert re.search(r"\b(\d+) cells: \1 done, 0 missing", audit)
    assert "stale:" not in audit


# --- a job on another machine: it gets what it declares, and nothing else


@pytest.fixture(scope="module")
def listed(demo):
    """The jobs of the run, as a dry run tells them."""
    with contextlib.chdir(demo.folder):
        return jobs.listed(None, ["config.yaml", *demo.config_files()])


@pytest.mark.parametrize("result", [f"{SET}/translations.jsonl", "tables/main.md"])
def test_a_job_needs_only_the_files_that_it_declares(demo, listed, tmp_path, result):
    """Nightly has the other rules, in a storage."""
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


# --- verify: the results computed again, before any test that changes them; and what it says of changed ones


def test_verify_finds_everything_that_it_can_check_the_same(demo, entropy_valley):
    printed = entropy_valley("verify", "results/smallest", "--translate", "1")
    same = {
        name.strip(): int(count.replace(",", ""))
        for name, count in re.findall(r"^(.+?) {2,}([\d,]+) +0 ", printed, re.M)
    }
    assert same["all"] > 3500 and len(printed.splitlines()) < 60
    assert same["texts decoded again"] == 1
    wanted = ("texts", "canvases", "BLEU and chrF", "COMET of sentences", "tables/main.csv", "tables/coverage.csv")
    assert all(same[name] for name in wanted)


def changed(path, change, **row):
    """Change the first row of a file that has these values, or else its whole text."""
    lines = path.read_text(encoding="utf-8").split("\n")
    if row:
        at = next(at for at, line in enumerate(lines) if row.items() <= json.loads(line).items())
        lines[at] = json.dumps(change(json.loads(lines[at])), ensure_ascii=False)
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        before = "\n".join(lines)
        after = change(before)
        assert after != before
        path.write_text(after, encoding="utf-8")


def sealed(root):
    """Let all records have the digests of the files that are there: what changes a result changes these, too."""
    places = [path for path in root.rglob("*.json") if path.name.endswith(ENDING) or path.name in verification.HEADERS]
    for place in sorted(places, key=lambda path: path.name.endswith(ENDING)):  # tables read headers
        record = json.loads(place.read_text(encoding="utf-8"))
        for name, written in record["outputs"].items():
            if name != place.name:
                written["digest"] = files.file_digest(place.parent / name)
        for path in record["inputs"]:
            if (file := root / path.removeprefix("results/smallest/")).is_file():
                record["inputs"][path] = files.file_digest(file)
        if "digest" in record:  # its own, of all else
            record["digest"] = files.digest({key: value for key, value in record.items() if key != "digest"})
        files.write_json(place, record)


@pytest.fixture
def copied(demo, tmp_path):
    unread = shutil.ignore_patterns("store", "work", "logs", "comet", ".*", "pages")
    return Path(shutil.copytree(demo.folder / "results/smallest", tmp_path / "copy", ignore=unread))


EV = {"method": "ev"}
ROWS, SCORES = f"{SET}/translations.jsonl", f"{SET}/scores.jsonl"


def exchanged(text):
    return (
        text.replace('"method": "ev"', "EV")
        .replace('"method": "ratio"', '"method": "ev"')
        .replace("EV", '"method": "ratio"')
    )


def head_of(cells, method):
    return next(one for one in cells["facts"]["cells"] if one["method"] == method)


def bleu_of_91(text):
    header = json.loads(text)
    head_of(header, "ev")["bleu"] = 91.0
    return json.dumps(header)


def edited(pattern, replacement):
    return lambda text: re.sub(pattern, replacement, text, count=1, flags=re.M)


CHANGES = {  # file, row, change; then where a difference must be named
    "score": (
        [(SCORES, EV, lambda row: row | {"toy_comet": round(row["toy_comet"] + 0.1, 6)})],
        [
            (SCORES, "toy_comet"),
            (f"{SET}/scores.json", "toy_comet of grammar ev"),
            ("tables/main.csv", "ev toy_comet), mean"),
        ],
    ),
    "BLEU in a header": (
        [(f"{SET}/scores.json", {}, bleu_of_91)],
        [(f"{SET}/scores.json", "bleu of grammar ev med-T8")],
    ),
    "two methods": (
        [(ROWS, {}, exchanged), (SCORES, {}, exchanged)],
        [
            (ROWS, "canvas.candidates"),
            ("tables/main.csv", "ev toy_comet), mean"),
            ("tables/main.csv", "ratio bleu), mean"),
        ],
    ),
    "two methods of the scores": ([(SCORES, {}, exchanged)], [(SCORES, "chrf"), (SCORES, "toy_comet")]),
    "canvas": (
        [(ROWS, EV, lambda row: row | {"canvas": row["canvas"] | {"length": row["canvas"]["candidates"][1]}})],
        [(ROWS, "canvas.length")],
    ),
    "text": ([(ROWS, EV, lambda row: row | {"hypothesis": "你好。"})], [(ROWS, "hypothesis"), (SCORES, "chrf")]),
    "tokens": ([(ROWS, EV, lambda row: row | {"tokens": [*row["tokens"][1:], 300]})], [(ROWS, "hypothesis")]),
    "calls": (
        [(ROWS, EV, lambda row: row | {"calls": 12})],
        [(ROWS, "calls of the sentence"), ("tables/cost.csv", "here"), ("tables/main.md", "seal")],
    ),
    "cell of a table": (
        [("tables/main.csv", {}, edited(r"(,ev,bleu,)[^,]+", r"\g<1>38.6"))],
        [("tables/main.csv", "ev bleu), mean")],
    ),
    "p-value": (
        [("tables/full_significance.csv", {}, edited(r"0\.\d+(,16,200,)", r"0.0004\1"))],
        [("tables/full_significance.csv", "ev ratio), cohens_d")],
    ),
    "row of a table": (
        [("tables/coverage.csv", {}, edited(r"^.*,number,.*,ev,.*\n", ""))],
        [("tables/coverage.csv", "row of")],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_verify_names_what_was_changed_though_all_digests_were_made_to_fit(demo, copied, name):
    changes, expected = CHANGES[name]
    for file, row, change in changes:
        changed(copied / file, change, **row)
    sealed(copied)
    _, report = verification.verify(copied, demo.folder / "results/smallest/comet")
    named = [(one.file, one.place) for one in report.differences]
    for file, place in expected:
        assert any(file == where and place in at for where, at in named), (file, place, named[:20])
    assert not any("digest" in at for _, at in named)


def test_verify_ends_with_status_1_and_names_a_file_that_is_not_what_its_record_says(copied, monkeypatch, capsys):
    changed(copied / "tables/main.md", lambda text: text.replace("0.", "1.", 1))
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "verify", str(copied)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr().out
    assert ended.value.code == 1 and "\ntables/main.md: digest in tables/main.made.json: " in printed
    assert "COMET's checkpoint is not at hand" in printed


def test_verify_finds_a_forged_text_by_decoding_it_again(copied):
    """Its token ids, its text and its scores fit together, and all digests were made to fit."""
    one, system, row = next(again.drawn(verification.Folder(copied), 1))
    tokens = [*row.values["tokens"][:-1], 300]
    text = verification.Folder(copied).tokenizer(one.backbone).decode(tokens, skip_special_tokens=True).strip()
    key = {**system._asdict(), "id": row.values["id"]}
    changed(copied / one.home / results.TRANSLATIONS, lambda row: row | {"tokens": tokens, "hypothesis": text}, **key)
    sealed(copied)
    folder, report = verification.Folder(copied), verification.Report()
    again.check(folder, report, 1, "cpu")
    (found,) = [difference for difference in report.differences if difference.part == again.PART]
    assert found.place.startswith(f"line {row.line}, tokens (preferred by ") and found.stored == tokens


HOSTILE = {
    "no record": ("tables/main.made.json", lambda text: "{}"),
    "many resamples": ("tables/coverage.made.json", edited(r'"resamples": \d+', '"resamples": 1000000000000')),
    "a ratio as text": (f"{SET}/translations.json", edited(r'"ratios": 0.71', '"ratios": "1e999999999"')),
    "many neighbours": (
        f"{SET}/translations.json",
        edited(r'"ev": \{', '"ev": {"method": "neighbours", "radius": 1000000000000,'),
    ),
    "no number": (SCORES, edited(r'"toy_comet": [\d.]+', '"toy_comet": NaN')),
    "no text": (ROWS, edited(r'"hypothesis": "', '"hypothesis": 1, "text": "')),
    "no cells": ("tables/main.made.json", edited(r'"cells": \[', '"cells": [1, ')),
    "a large id": (ROWS, edited(r'"tokens": \[', '"tokens": [99999999999999999999, ')),
    "no table": ("tables/main.csv", lambda text: text + "1,2,3\n"),
    "a deep header": (f"{SET}/scores.json", lambda text: "[" * 100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_verify_ends_with_one_error_on_what_cannot_be_read(copied, name):
    file, change = HOSTILE[name]
    changed(copied / file, change)
    with pytest.raises(InputError) as error:
        verification.verify(copied)
    assert "\n" not in str(error.value) and str(copied) in str(error.value).replace(
        "the record of a table", str(copied)
    )


def test_verify_reads_nothing_outside_of_the_folder(copied):
    """A record that names a set elsewhere: its table is not checkable."""
    secret = copied.parent / "secret"
    shutil.copytree(copied / "en-zh", secret / "en-zh")
    changed(
        copied / "tables/main.made.json",
        lambda text: text.replace('"results/smallest/en-zh', '"results/smallest/../secret/en-zh'),
    )
    _, report = verification.verify(copied)
    assert report.unchecked["tables/main.csv"].keys() == {"cells that are not among the results"}


def test_verify_of_a_folder_without_results(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=str(folder)):
            verification.verify(folder)


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


# --- human sentences: Tatoeba pairs, and the WMT22 files as a second test set

DATA = os.environ.get("ENTROPY_VALLEY_DATA", "")
TINY = {"steps": 40, "batch": 16, "width": 32, "layers": 2, "heads": 2, "kv_heads": 2, "ffn": 64}
HUMAN = {
    "results": "results",
    "matrix": {"seeds": [1], "steps": [8]},
    "tables": {"steps": 8, "studies": []},
    "valley": {"backbones": []},
    "sources": {"tatoeba": {"folder": f"{DATA}/tatoeba"}, "wmt22": {"folder": f"{DATA}/wmt22"}},
    "corpus": {"train": 400, "dev": 40, "test_limit": 50},
    "backbones": {"llada-tiny": {"pretraining": TINY}},
    "training": {"max_steps": 5, "global_batch": 16},
    "scoring": {"comet": {"training": {"steps": 30, "width": 32, "minimum_spearman": -1.0}}},
    "analysis": {"resamples": 200},
}


@pytest.mark.cluster  # half a minute
@pytest.mark.skipif(not DATA, reason="ENTROPY_VALLEY_DATA names no folder of tatoeba/ and wmt22/")
def test_fifty_sentences_of_each_test_set(tmp_path):
    Workspace(tmp_path, "config/tatoeba.yaml", HUMAN, real=True).run("--cores", "2", "results/tables/main.md")
    corpus, matrix = tmp_path / "results/corpus/en-de", tmp_path / "results/en-de/llada-tiny/seed1/matrix"
    sources = {row["source"] for row in files.read_jsonl(corpus / "train.jsonl")}
    assert not sources & {row["source"] for row in files.read_jsonl(corpus / "test/tatoeba.jsonl")}
    table = (tmp_path / "results/tables/main.md").read_text()
    for testset in ("tatoeba", "wmt22"):
        cell = Cell(Run("en-de", "llada-tiny", 1), testset, "ev", "med", 8)
        assert len(results.rows(matrix / results.TRANSLATIONS, cell)) == 50
        assert results.entry(matrix / results.SCORES, cell)["sentences"] == 50
        assert testset in table

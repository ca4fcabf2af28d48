"""`entropy-valley verify` on the finished run: what was changed is found, and nothing else.

Records are made to fit the changes. What needs the models of a run is in ``workflow/test_smallest_demo.py``.
"""

from __future__ import annotations

import shutil
import sys

import finished
import pytest
from forging import changed, edited, sealed

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment import cli
from entropy_valley.experiment.verification import Folder, Report, products, verify
from entropy_valley.results import CONFIG

# --- What is made of sets: tables, figures, pages, the document.


def without(*endings):
    """Remove files beside one."""
    return lambda path: [path.with_suffix(ending).unlink() for ending in endings]


def text(pattern, replacement):
    return lambda path: changed(path, edited(pattern, replacement))


def last_byte(path):
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(content)


def line_more(path):
    path.write_text(path.read_text(encoding="utf-8") + path.read_text(encoding="utf-8").splitlines()[-1] + "\n")


ALL = (".tex", ".float.tex", ".md", ".html", ".csv")
NUMBER = text(r"(,0\.)\d\d", r"\g<1>0505")
MADE = {  # a file, its change, and what a line about it says
    "a number in Markdown": ("tables/main.md", text(r"(\d)\.(\d)", r"\g<1>7.\2"), "row 3 ("),
    "a number in LaTeX": ("tables/coverage.tex", text(r"0\.(\d)", r"9.\1"), " → "),
    "a page of sentences": ("pages/en-zh.grammar.html", text("test-000002", "test-000003"), "test-000003"),
    "the document": ("report.tex", text("Length-adaptive", "Adaptive"), " → "),
    "a PDF": ("figures/cases.pdf", last_byte, "content: "),
    "a number of a figure": ("figures/entropy_valley.csv", NUMBER, " → "),
    "a setting": ("tables/hyperparams.csv", text("learning_rate,0.01", "learning_rate,0.02"), "value: 0.02 → 0.01"),
    "a mean": ("tables/matrix.csv", NUMBER, "mean: 0.0505"),
    "a column": ("tables/ar_reference.csv", text("ci_low", "low"), '"low" → "ci_low"'),
    "a row more": ("tables/dissociation.csv", line_more, "number of rows: "),
    "no table": ("tables/readings.md", without(*ALL), "file not found"),
    "no figure": ("figures/pareto.png", without(".png", ".svg", ".pdf", ".csv"), "file not found"),
}
UNCHANGED = ("tables/ceiling.csv", text(r"(,0\.\d{10}),", r"\g<1>4,"))  # in the eleventh digit


@pytest.fixture(scope="module")
def differences(tmp_path_factory):
    """The lines about each table, figure or page, after all the changes."""
    run = finished.Run(tmp_path_factory.mktemp("finished"))
    finished.make_all(run)
    files.write_json(run.root / CONFIG, finished.config() | {"results": str(run.root)})
    (run.root / "tables/mine.csv").write_text("1\n")
    for file, change, *_ in (*MADE.values(), UNCHANGED):
        change(run.root / file)
    sealed(run.root, str(run.root))
    recorded = files.read_json(run.root / SET / "translations.json")["facts"]["machine"]
    with pytest.MonkeyPatch.context() as patched:
        # As on the machine of the run: figures of another one are not checkable.
        patched.setattr(products.machine, "description", lambda: recorded)
        report = verify(run.root)
    assert report.unchecked["tables, figures and pages"] == {products.FURTHER: 1}
    assert len(report.same) > 40 and report.same.total() > 40_000
    lines = {}
    for _, line in report.differences:
        lines.setdefault(stem(line.partition(": ")[0]), []).append(line)
    return lines


def stem(file):
    """A table, figure or page by one of its files."""
    return file.rpartition("/")[0] + file.rpartition("/")[2].partition(".")[0]


@pytest.mark.parametrize("name", MADE)
def test_a_changed_table_figure_or_page_is_found(differences, name):
    file, _, problem = MADE[name]
    assert any(problem in line for line in differences.get(stem(file), ()))


def test_nothing_else_is_found(differences):
    assert differences.keys() == {stem(file) for file, *_ in MADE.values()}


# --- The sets themselves.

SET = "en-zh/llada-tiny/seed1/matrix"
ROWS, SCORES = f"{SET}/translations.jsonl", f"{SET}/scores.jsonl"
EV = {"method": "ev", "steps": 8}


def row(file, change, **values):
    return lambda root: changed(root / file, change, **(EV | values))


def canvas(**values):
    return row(ROWS, lambda row: row | {"canvas": row["canvas"] | values})


def header(file, change):
    """Change what a header says of a cell."""

    def edit(root):
        content = files.read_json(root / file)
        change(next(one for one in content["facts"]["cells"] if EV.items() <= one.items()))
        files.write_json(root / file, content)

    return edit


def exchanged(file):
    """Exchange two methods."""
    pair = {"ev": "ratio", "ratio": "ev"}

    def edit(root):
        rows = files.read_jsonl(root / file)
        files.write_jsonl(root / file, [row | {"method": pair.get(row["method"], row["method"])} for row in rows])

    return edit


def dropped(count):
    """Drop the last sentences of a cell."""

    def edit(root):
        rows = files.read_jsonl(root / ROWS)
        mine = [at for at, row in enumerate(rows) if EV.items() <= row.items()][-count:]
        files.write_jsonl(root / ROWS, [row for at, row in enumerate(rows) if at not in mine])

    return edit


def swapped(root):
    """Exchange the sets of two runs."""
    one, other = root / SET, root / SET.replace("seed1", "seed2")
    one.rename(root / "other")
    other.rename(one)
    (root / "other").rename(other)


IN_SETS = {  # the changes, and what a line says
    "a text": ([row(ROWS, lambda row: row | {"hypothesis": "你好。"})], "scores.jsonl: line 17, chrf: "),
    "a canvas": ([canvas(length=7)], "line 17, canvas.length: 7 → 8"),
    "candidates": ([canvas(candidates=[5, 7, 8, 9, 11])], "line 17, canvas.candidates: "),
    "an entropy": ([canvas(scores=[0.0, 0.3, 0.3, 0.3, 0.3])], "line 17, canvas.length: "),
    "slots of a canvas": ([row(ROWS, lambda row: row | {"length": 99})], "line 17, length: 99 → 8"),
    "calls": ([row(ROWS, lambda row: row | {"calls": 12})], "line 17, calls and slots: "),
    "totals": (
        [header(f"{SET}/translations.json", lambda one: one.update(passes=1))],
        "passes of grammar ev med-T8: 1",
    ),
    "token counts": (
        [
            lambda root: changed(
                root / "en-zh/llada-tiny/tokens/grammar.jsonl", lambda row: row | {"source_tokens": 1}, id="test-000001"
            )
        ],
        "canvas.candidates: ",
    ),
    "a score": ([row(SCORES, lambda row: row | {"toy_comet": 0.9})], "grammar ev med-T8, the mean of its rows: "),
    "chrF": ([row(SCORES, lambda row: row | {"chrf": 99.0})], "line 17, chrf: 99.0 → "),
    "BLEU": ([header(f"{SET}/scores.json", lambda one: one.update(bleu=91.0))], "bleu of grammar ev med-T8: 91.0 → "),
    "two methods": ([exchanged(ROWS), exchanged(SCORES)], "canvas.candidates: "),
    "two runs": ([swapped], "is a copy of "),
    "a sentence": (
        [dropped(1)],
        "translations.jsonl: grammar ev med-T8 has 1 sentence of rows or test set alone: test-000016",
    ),
    "a cell": ([dropped(16)], "translations.jsonl: cells: "),
    "a row that cannot be read": (
        [row(ROWS, lambda row: {key: value for key, value in row.items() if key != "canvas"})],
        "translations.jsonl: cannot be checked: ",
    ),
    "no record": ([lambda root: (root / SET / "scores.json").write_text("[" * 100_000)], "scores.json: cannot be"),
}


@pytest.fixture
def root(tmp_path):
    """The finished run with two of its sets, which are quick to check."""
    root = finished.Run(tmp_path).root
    for path in {path.parent for path in root.rglob("translations.jsonl")}:
        if path.relative_to(root).as_posix() not in (SET, SET.replace("seed1", "seed2")):
            shutil.rmtree(path)
    files.write_json(root / CONFIG, finished.config() | {"results": str(root)})
    return root


@pytest.fixture
def without_products(monkeypatch):
    """Sets alone are checked."""
    monkeypatch.setattr(products, "_products", lambda *_: [])


@pytest.mark.parametrize("name", IN_SETS)
def test_a_changed_set_is_found_and_the_rest_is_checked(root, without_products, name):
    changes, problem = IN_SETS[name]
    for change in changes:
        change(root)
    if "record" not in name:
        sealed(root, "results/fixture")
    report = verify(root)
    lines = [line for _, line in report.differences]
    assert any(problem in line for line in lines)
    assert not any("digest in" in line for line in lines) or name in ("no record", "two runs")
    assert report.same.total() > 700


def test_a_file_that_is_not_what_its_record_says_ends_with_status_1(root, without_products, monkeypatch, capsys):
    changed(root / ROWS, edited("打电话", "打"))
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "verify", str(root)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr().out
    assert ended.value.code == 1 and f"\n{SET}/translations.json: translations.jsonl was edited" in printed
    assert "COMET's checkpoint is not at hand" in printed


def test_a_config_is_needed_and_its_own_classes_are_not_imported(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    config = files.read_json(root / CONFIG)
    for name, problem in (("evil:Method", "is not of this package"), ("other", "give module:Class")):
        methods = config["length_methods"] | {"mine": {"method": name}}
        files.write_json(root / CONFIG, config | {"length_methods": methods})
        ((_, line),) = verify(root).differences
        assert line.startswith("config.json: cannot be checked: ") and problem in line
    (root / CONFIG).unlink()
    with pytest.raises(InputError, match=r"config\.json: file not found"):
        verify(root)


def test_a_folder_without_a_config_is_refused_and_those_in_it_are_named(root, tmp_path):
    """As results, which may have results/demo alone."""
    (tmp_path / "outer").mkdir()
    for name in ("demo", "mine"):
        (tmp_path / "outer" / name).symlink_to(root)
    with pytest.raises(InputError, match=r"file not found\. Name the folder .*, such as \S+/demo, \S+/mine\."):
        Folder(tmp_path / "outer", Report())
    for place in (tmp_path, tmp_path / "none", root / "en-zh"):
        with pytest.raises(InputError, match=str(place)):
            Folder(place, Report())

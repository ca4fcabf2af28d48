"""`entropy-valley verify` on two sets of the finished run: what was changed is found, and nothing else.

Records are made to fit the changes. Tables, figures and pages are in ``tables/test_finished_run.py``, what needs the
models of a run in ``workflow/test_smallest_demo.py``.
"""

import shutil
import sys

import finished
import pytest
from forging import changed, edited, sealed, swapped

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment import cli
from entropy_valley.experiment.verification import Folder, Report, products, verify
from entropy_valley.results import CONFIG

SET = "en-zh/llada-tiny/seed1/matrix"
ROWS, SCORES = f"{SET}/translations.jsonl", f"{SET}/scores.jsonl"
EV = {"method": "ev", "steps": 8}
CELL = "grammar ev med-T8"


def row(file, sentence, change):
    return lambda root: changed(root / file, lambda row: row | change, **EV, id=f"test-0000{sentence}")


def canvas(sentence, **values):
    def change(row):
        return row | {"canvas": row["canvas"] | values}

    return lambda root: changed(root / ROWS, change, **EV, id=f"test-0000{sentence}")


def header(file, **values):
    """Change what a header says of a cell."""

    def edit(root):
        content = files.read_json(root / file)
        next(one for one in content["facts"]["cells"] if EV.items() <= one.items()).update(values)
        files.write_json(root / file, content)

    return edit


def token_counts(root):
    path = root / "en-zh/llada-tiny/tokens/grammar.jsonl"
    changed(path, lambda row: row | {"source_tokens": 1}, id="test-000012")


VALUES = [  # changes of one cell, each of another sentence, and what a line says
    (row(ROWS, "01", {"hypothesis": "你好。"}), "scores.jsonl: line 17, chrf: "),
    (canvas("02", length=7), "line 18, canvas.length: 7 → 4"),
    (canvas("03", candidates=[5, 7, 8, 9]), "line 19, canvas.candidates: "),
    (canvas("06", scores=[0.0, 0.3, 0.3, 0.3]), "line 22, canvas.length: 6 → 4"),
    (row(ROWS, "08", {"length": 99}), "line 24, length: 99 → 6"),
    (row(ROWS, "09", {"calls": 12}), "line 25, calls and slots: "),
    (token_counts, "line 28, canvas.candidates: "),
    (row(SCORES, "13", {"toy_comet": 0.9}), f"{CELL}, the mean of its rows: "),
    (row(SCORES, "14", {"chrf": 99.0}), "line 30, chrf: 99.0 → "),
    (header(f"{SET}/translations.json", passes=1), f"passes of {CELL}: 1"),
    (header(f"{SET}/scores.json", bleu=91.0), f"bleu of {CELL}: 91.0 → "),
]


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


def unreadable(root):
    """A row has no canvas."""

    def change(row):
        return {key: value for key, value in row.items() if key != "canvas"}

    changed(root / ROWS, change, **EV)


IN_SETS = {  # the changes, and what a line says
    "two methods": ([exchanged(ROWS), exchanged(SCORES)], "canvas.candidates: "),
    "two runs": ([lambda root: swapped(root / SET, root / SET.replace("seed1", "seed2"))], "is a copy of "),
    "a sentence": ([dropped(1)], f"translations.jsonl: {CELL} has 1 sentence of rows or test set alone: test-000016"),
    "a cell": ([dropped(16)], "translations.jsonl: cells: "),
    "a row that cannot be read": ([unreadable], "translations.jsonl: cannot be checked: "),
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


def found(root):
    """The lines about a folder whose rest is checked, too."""
    report = verify(root)
    assert report.same.total() > 700
    return [line for _, line in report.differences]


def test_each_changed_value_is_found(root, without_products):
    for change, _ in VALUES:
        change(root)
    sealed(root, "results/fixture")
    lines = found(root)
    assert [problem for _, problem in VALUES if not any(problem in line for line in lines)] == []
    assert not any("digest in" in line for line in lines)


@pytest.mark.parametrize("name", IN_SETS)
def test_a_changed_set_is_found_and_the_rest_is_checked(root, without_products, name):
    changes, problem = IN_SETS[name]
    for change in changes:
        change(root)
    if name != "no record":
        sealed(root, "results/fixture")
    lines = found(root)
    assert any(problem in line for line in lines)
    assert not any("digest in" in line for line in lines) or name in ("no record", "two runs")


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

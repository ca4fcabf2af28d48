"""A run's config and code are frozen when it starts: its jobs refuse to work with others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from entropy_valley import run
from entropy_valley.errors import InputError
from entropy_valley.experiment import session
from entropy_valley.experiment.session import Session

GRID = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}}


@pytest.fixture
def started(load, monkeypatch, tmp_path):
    """A run of the paper's matrix; this process is one of its jobs."""
    monkeypatch.setenv(run.HANDED_DOWN, "")
    begun = Session.start(load({})).asked(["results/tables/main.tex"])
    begun.write(tmp_path / "runs")
    return begun


def test_a_job_knows_its_run(load, started):
    assert session.current(load({}), job=True) == started
    assert started.targets == ("results/tables/main.tex",)


def test_a_grid_edited_while_jobs_wait_is_named(load, started):
    said = r"length_methods\.ev\.ratios\.en-zh: \[0\.7,0\.75,0\.8,0\.85,0\.9\] → \[0\.6,0\.8,1\.0\]"
    with pytest.raises(InputError, match=said):
        session.current(load(GRID), job=True)


@pytest.mark.parametrize(
    "over", [{"matrix": {"seeds": [1]}}, {"device": "cpu"}, {"reveal_orders": {"random": {"seed": 2}}}]
)
def test_any_changed_key_is_refused(load, started, over):
    with pytest.raises(InputError, match=r"^config: changed since this run was started: \w+\.?\w*.* → "):
        session.current(load(over), job=True)


def test_a_job_without_a_run_is_refused(load, monkeypatch):
    monkeypatch.delenv(run.HANDED_DOWN, raising=False)
    with pytest.raises(InputError, match="which run it belongs to"):
        session.current(load({}), job=True)


def test_what_the_users_shell_names_is_no_run_of_a_new_one(load, started):
    again = session.current(load(GRID), job=False)
    assert again.id != started.id
    assert Session.handed_down() is None


def test_every_run_has_its_own_id(load):
    assert len({Session.start(load({})).id for _ in range(3)}) == 3


@pytest.fixture
def edited(started, tmp_path, monkeypatch):
    """A job of a run that was started with another version of one file."""
    (path,) = (tmp_path / "runs").iterdir()
    description = json.loads(path.read_text())
    description["code"]["entropy_valley/canvas/selection.py"] = "0" * 32
    path.write_text(json.dumps(description))


def test_a_script_names_the_edited_file_and_does_nothing(edited, capsys):
    with pytest.raises(SystemExit) as end:
        run.script(lambda: pytest.fail("it ran"))
    assert end.value.code == 2
    said = "error: code: changed since this run was started: entropy_valley/canvas/selection.py. Undo the change"
    assert capsys.readouterr().err.startswith(said)


def test_a_job_of_a_cluster_names_it_too(load, edited):
    with pytest.raises(InputError, match=r"canvas/selection\.py"):
        session.current(load({}), job=True)


def test_the_code_is_the_package_and_the_workflow():
    names = run.code().keys()
    assert {"Snakefile", "workflow/rules/canvas.smk", "workflow/scripts/canvas.py", "entropy_valley/run.py"} <= names
    assert not [name for name in names if "__pycache__" in name]


def test_a_new_file_is_a_change(started, tmp_path):
    with pytest.raises(InputError, match="Snakefile"):
        run.require_same_code({name: digest for name, digest in started.code.items() if name != "Snakefile"})


@pytest.mark.parametrize("path", sorted(Path("workflow/scripts").glob("*.py")), ids=lambda path: path.stem)
def test_every_script_compares(path):
    assert path.read_text(encoding="utf-8").rstrip().endswith("run.script(main)")

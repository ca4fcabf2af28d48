"""The audit: every cell of the matrix, done or missing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from entropy_valley.experiment import audit, base_files, load_files
from entropy_valley.experiment.matrix import all_cells

ROOT = Path(__file__).parents[2]


@pytest.fixture
def paper(tmp_path):
    return load_files(base_files(ROOT)).model_copy(update={"results": str(tmp_path / "results")})


def finish(experiment, chosen):
    for cell in chosen:
        path = Path(cell.scores(experiment.results))
        path.parent.mkdir(parents=True)
        path.touch()


def test_nothing_is_done_at_first(paper):
    states = audit.audit(paper)
    assert [cell for cell, _ in states] == all_cells(paper)
    assert {state for _, state in states} == {audit.MISSING}


def test_a_cell_is_done_when_its_scores_are_there(paper):
    done = all_cells(paper)[::7]
    finish(paper, done)
    assert [cell for cell, state in audit.audit(paper) if state == audit.DONE] == done


def test_the_file_has_one_line_for_each_cell(paper, tmp_path):
    finish(paper, all_cells(paper)[:2])
    audit.write_tsv(tmp_path / "audit" / "matrix.tsv", audit.audit(paper))
    header, *rows = (tmp_path / "audit" / "matrix.tsv").read_text().splitlines()
    assert header.split("\t") == ["backbone", "direction", "seed", "testset", "method", "order", "steps", "state"]
    assert len(rows) == len(all_cells(paper))
    assert rows[0].split("\t") == ["llada-8b", "en-zh", "1", "wmt22", "oracle", "med", "32", "done"]
    assert sum(row.endswith("\tmissing") for row in rows) == len(all_cells(paper)) - 2


def test_the_terminal_table_has_totals(paper, capsys):
    finish(paper, [cell for cell in all_cells(paper) if cell.run.seed == 2])
    audit.show(audit.audit(paper))
    printed = capsys.readouterr().out
    cells = len(all_cells(paper))
    done = sum(cell.run.seed == 2 for cell in all_cells(paper))
    assert f"{cells} cells: {done} done, {cells - done} missing" in printed
    assert "1 3" in printed  # the seeds that each row lacks


def test_the_command_is_quick_and_needs_neither_gpu_nor_data(tmp_path):
    start = time.monotonic()
    finished = subprocess.run(
        [sys.executable, "-m", "entropy_valley", "audit", "--configfile", *base_files(ROOT), "--out", "matrix.tsv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert time.monotonic() - start < 5
    cells = len(all_cells(load_files(base_files(ROOT))))
    assert f"{cells} cells: 0 done, {cells} missing" in finished.stdout
    assert (tmp_path / "matrix.tsv").is_file()

from __future__ import annotations

import contextlib
import csv
import io
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import fake_results
import pytest
from fake_results import change

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


def run(script, spec, *arguments):
    """The exit status and the error output of a script, run in this process: a new one imports for seconds."""
    command = [str(SCRIPTS / f"{script}.py"), spec, *map(str, arguments)]
    status, said = 0, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        patch.setattr(sys, "argv", command)
        try:
            runpy.run_path(command[0], run_name="__main__")
        except SystemExit as ended:
            status = ended.code
    return SimpleNamespace(returncode=status, stderr=said.getvalue())


def one_backbone(spec):
    return spec | {"cells": [cell for cell in spec["cells"] if cell["backbone"] == "llada-tiny"]}


@pytest.mark.parametrize(
    ("script", "suffixes"),
    [
        ("main_table", ("tex", "csv", "md")),
        ("crossbb_table", ("tex", "csv", "md")),
        ("hero_figure", ("pdf", "png", "csv")),
        ("crossbb_figure", ("pdf", "png", "csv")),
    ],
)
def test_writes_its_three_files(spec, tmp_path, script, suffixes):
    outputs = {suffix: tmp_path / f"out.{suffix}" for suffix in suffixes}
    options = [part for suffix, path in outputs.items() for part in (f"--{suffix}", path)]
    result = run(script, json.dumps(one_backbone(spec)), *options)
    assert result.returncode == 0, result.stderr
    assert all(path.stat().st_size > 100 for path in outputs.values())


@pytest.mark.parametrize(
    ("script", "results"), [("ar_reference_table", "matched"), ("dream_instruct_table", "instruct")]
)
def test_writes_its_table(request, tmp_path, script, results):
    outputs = {suffix: tmp_path / f"out.{suffix}" for suffix in ("tex", "csv", "md")}
    options = [part for suffix, path in outputs.items() for part in (f"--{suffix}", path)]
    result = run(script, json.dumps(request.getfixturevalue(results)), *options)
    assert result.returncode == 0, result.stderr
    assert all(path.stat().st_size > 100 for path in outputs.values())


@pytest.mark.parametrize(
    ("script", "suffixes"),
    [
        ("entropy_valley_figure", ("pdf", "png", "csv")),
        ("selector_checks_table", ("tex", "csv", "md")),
        ("selector_checks_figure", ("pdf", "png", "csv")),
    ],
)
def test_writes_what_is_seen_of_all_mask_canvases(tmp_path, script, suffixes):
    outputs = {suffix: tmp_path / f"out.{suffix}" for suffix in suffixes}
    options = [part for suffix, path in outputs.items() for part in (f"--{suffix}", path)]
    result = run(script, json.dumps(fake_results.write_selector_checks(tmp_path)), *options)
    assert result.returncode == 0, result.stderr
    assert all(path.stat().st_size > 100 for path in outputs.values())


def test_hero_has_a_panel_b_where_there_are_autoregressive_cells(matched, tmp_path):
    outputs = {suffix: tmp_path / f"out.{suffix}" for suffix in ("pdf", "png", "csv")}
    options = [part for suffix, path in outputs.items() for part in (f"--{suffix}", path)]
    assert run("hero_figure", json.dumps(matched), *options).returncode == 0
    rows = list(csv.DictReader(outputs["csv"].open()))
    methods = {panel: {row["method"] for row in rows if row["panel"] == panel} for panel in "AB"}
    assert methods == {"A": {"oracle", "ratio", "ev"}, "B": {"oracle", "ratio", "ev", "beam4"}}


def test_significance(spec, tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    result = run("significance", f"@{tmp_path / 'spec.json'}", "--out", tmp_path / "tests.csv")
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((tmp_path / "tests.csv").open()))
    assert len(rows) == len(spec["cells"])
    zero = next(row for row in rows if float(row["p_one_sided"]) == 0)
    assert zero["p_one_sided_printed"] == "< 0.005"
    assert (zero["resamples"], zero["bootstrap_seed"], zero["sentences"]) == ("200", "1", "60")


def test_numbers_that_do_not_compare_leave_the_old_table(spec, tmp_path):
    spec = one_backbone(spec)
    outputs = [tmp_path / f"out.{suffix}" for suffix in ("tex", "csv", "md")]
    for path in outputs:
        path.write_text("before")
    change(Path(spec["cells"][1]["path"]).with_name("decoding.json"), signature={})
    result = run("main_table", json.dumps(spec), "--tex", outputs[0], "--csv", outputs[1], "--md", outputs[2])
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert [path.read_text() for path in outputs] == ["before"] * 3

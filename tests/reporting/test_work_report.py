"""The ledgers of a results folder, added up by run and kind of job."""

from __future__ import annotations

import csv
import sys
import time

import pytest

from entropy_valley import cli, files
from entropy_valley.errors import InputError
from entropy_valley.reporting import work_report as ledgers
from entropy_valley.reporting.work_report import Kind

RUN, OTHER, LEFT = "en-zh/llada-8b/seed2", "en-zh/llada-8b/seed10", "en-de/llama3-8b/seed1"


def job(results, run, kind, asked, computed, passes=1, tokens=10, rows=5, seconds=0.25, **more):
    counts = {"asked": asked, "computed": computed, "passes": passes, "tokens": tokens, "rows": rows, **more}
    entry = {"job": kind, "out": "somewhere", "seconds": seconds, **counts}
    files.write_json(results / "store" / run / "runs" / f"host-1-{time.time_ns()}.json", entry)


@pytest.fixture
def results(tmp_path):
    """Two seeds of a masked backbone, the first with a decode that ran twice, and an autoregressive one."""
    job(
        tmp_path, RUN, "canvas", asked=1500, computed=1400, passes=70, tokens=90_000, rows=20_000, seconds=60.5, loads=1
    )
    job(tmp_path, RUN, "canvas", asked=0, computed=0, passes=0, tokens=0, rows=0)
    for computed in (200, 0):
        job(tmp_path, RUN, "decode", asked=300, computed=computed, padded=computed // 10)
    job(tmp_path, OTHER, "decode", asked=300, computed=270)
    job(tmp_path, LEFT, "generate", asked=300, computed=300, loads=1)
    for method, slots in (("ev", 1000), ("ratio", 900)):
        files.write_json(
            tmp_path / RUN / "wmt22" / method / "med-T32" / "decoding.json", {"calls": 320, "slots": slots}
        )
    files.write_json(tmp_path / LEFT / "wmt22" / "beam4" / "decoding.json", {"calls": 77, "unfinished": 3})
    return tmp_path


def test_sums_by_run_and_kind_of_job(results):
    sums = ledgers.add_up(results)
    seeds = [Kind("en-zh", "llada-8b", seed, "", kind) for seed, kind in ((2, "canvas"), (2, "decode"), (10, "decode"))]
    assert list(sums) == [Kind("en-de", "llama3-8b", 1, "", "generate"), *seeds]
    canvas, decode, other = (sums[kind] for kind in seeds)
    assert canvas == {
        **{"jobs": 2, "loads": 1, "asked": 1500, "shared": 100, "computed": 1400},
        **{"passes": 70, "tokens": 90_000, "rows": 20_000, "seconds": 60.75},
    }
    assert (decode["jobs"], decode["asked"], decode["shared"], decode["computed"]) == (2, 600, 400, 200)
    assert (decode["calls"], decode["slots"]) == (640, 1900)
    assert "calls" not in other  # nothing of it is there yet


def test_a_run_with_a_pool_is_one_of_its_own(tmp_path):
    job(tmp_path, f"{RUN}-50k", "decode", asked=3, computed=3)
    (kind,) = ledgers.add_up(tmp_path)
    assert (kind.seed, kind.pool, kind.job) == (2, "50k", "decode")


def test_the_command_prints_runs_kinds_and_the_total(results, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "ledger", str(results), "--csv", str(tmp_path / "a" / "l.csv")])
    cli.main()
    printed = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in printed]
    assert ["canvas", "2", "1", "1,500", "100", "1,400", "70", "90,000", "–", "20,000", "60.8", "–", "–"] in [
        row[-13:] for row in rows
    ]
    assert ["decode", "3", "0", "900", "430", "470", "3", "30", "20", "15", "0.8", "640", "1,900"] in rows
    assert printed[-1] == (
        "6 jobs: 2700 results asked for, 530 shared, 2170 computed in 74 passes of 90040 tokens and 20 of padding, "
        "20020 head rows; models loaded: 2; 61.8 s. The methods, as the paper counts: 717 calls over 1900 slots"
    )
    with open(tmp_path / "a" / "l.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4 and sum(int(line["computed"]) for line in lines) == 2170
    assert [line["slots"] for line in lines] == ["", "", "1900", ""]
    assert (lines[0]["job"], lines[0]["calls"], lines[1]["seed"]) == ("generate", "77", "2")


def test_a_ledger_of_before_loads_were_counted_is_read(results):
    assert [counts["loads"] for counts in ledgers.add_up(results).values()] == [1, 1, 0, 0]


def test_no_ledger_is_one_clear_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["entropy-valley", "ledger"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "results/store: no ledger of any job. Name a results folder" in capsys.readouterr().err


@pytest.mark.parametrize("content", [{"job": "decode", "asked": 3}, [1]])
def test_what_is_no_ledger_is_named(results, content):
    files.write_json(results / "store" / RUN / "runs" / "odd.json", content)
    with pytest.raises(InputError, match=r"odd\.json: no .*passes"):
        ledgers.add_up(results)

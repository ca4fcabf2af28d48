"""The whole check as a job runs it, on a CPU: two processes train, and every line is there."""

from __future__ import annotations

import pytest

from entropy_valley import tables
from entropy_valley.checking import subject
from entropy_valley.config import load_files
from entropy_valley.runs import job

CONFIG = ["config/studies.yaml", "config.yaml", "config/demo.yaml", "config/smallest.yaml"]


@pytest.mark.cluster  # half a minute of CPU time: two processes start
def test_all_checks_pass_with_two_processes(tmp_path, capfd):
    asked = subject.of(load_files(CONFIG, tables.problems)) | {"processes": 2}
    job.require_checked(str(tmp_path), asked)
    (report,) = (path.read_text() for path in tmp_path.glob("*.txt"))
    log = capfd.readouterr().err  # what the training says stands between the lines
    assert all(line in log for line in report.splitlines())
    states = {line[8:34].strip(): line.split()[0] for line in report.splitlines()}
    apart = {"driver", "compiler", "pass llama3-tiny", "company llama3-tiny"}  # of a CPU, and autoregressive
    assert {name for name, state in states.items() if state == "skipped"} <= apart
    assert all(state == "ok" for name, state in states.items() if name not in apart)
    assert {"device", "bfloat16", "engine, float32", "engine, bfloat16", "COMET"} <= states.keys()
    assert "2 processes, float32, losses " in report

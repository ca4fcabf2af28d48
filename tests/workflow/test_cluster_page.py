"""The commands of docs/cluster.md: each is run here, as a dry run if it computes, or says what it needs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
from workspace import ROOT, Workspace

from entropy_valley import cli
from entropy_valley.checking import checks

PAGE = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
LINES = [line.strip() for block in BLOCKS for line in block.splitlines()]
NEEDS = re.compile(r"# needs a (GPU|network|cluster)\b")
RUN = [line for line in LINES if not NEEDS.search(line)]
SNAKEMAKE = [line for line in LINES if line.startswith("snakemake ")]


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """The paper's matrix, nothing done yet."""
    return Workspace(tmp_path_factory.mktemp("paper"))


def test_what_is_not_run_says_what_it_needs():
    known = (*SNAKEMAKE, *(line for line in RUN if line.split()[0] in ("entropy-valley", "head", ".")))
    assert [line for line in RUN if line not in known] == []
    assert len(RUN) >= 8


@pytest.mark.slow
@pytest.mark.cluster  # ten plans of the paper's matrix
@pytest.mark.parametrize("line", dict.fromkeys(line.partition("#")[0].strip() for line in SNAKEMAKE))
def test_snakemake_plans_what_the_page_says(papers, line):
    arguments = shlex.split(line)[1:]
    said = papers.dry_run(*arguments)
    assert "--unlock" in arguments or re.search(r"^\d+ jobs:", said, re.MULTILINE), said


@pytest.mark.slow
def test_the_first_sentence_is_translated_with_one_gpu_and_no_training(papers):
    """The file that the page shows is the one that it makes."""
    (made,) = [line for line in SNAKEMAKE if "config/first.yaml" in line]
    (shown,) = [line for line in LINES if line.startswith("head ")]
    assert shlex.split(shown)[-1] in shlex.split(made)
    planned = papers.planned(*shlex.split(made)[1:])
    rules = {job.split()[0] for job in planned}
    assert {"fetch_backbone", "adopt_adapter", "testset", "inference", "decode"} <= rules
    assert not rules & {"train", "corpus", "fetch_comet"}


@pytest.mark.slow
def test_the_audit_runs_before_anything_is_done(papers, monkeypatch, capsys):
    (line,) = [line for line in RUN if line.startswith("entropy-valley ")]
    monkeypatch.chdir(papers.folder)
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    cli.main()
    assert "missing" in capsys.readouterr().out


@pytest.mark.parametrize("line", [line for line in LINES if "entropy-valley check" in line])
def test_the_check_is_asked_about_what_the_config_has(line, monkeypatch):
    asked = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(checks, "everything", asked.append)
    monkeypatch.setattr(checks, "report", lambda lines: None)
    command = line.partition("#")[0]
    monkeypatch.setattr(sys, "argv", shlex.split(command[command.index("entropy-valley") :]))
    cli.main()
    (subject,) = asked
    assert (subject.device, subject.processes, list(subject.backbones)) == ("cuda", 1, ["llada-8b"])


def test_make_knows_the_installation():
    (line,) = [line for line in LINES if line.startswith("make ")]
    command = shlex.split(line.partition("#")[0])
    said = subprocess.run([*command, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "whl/cu126" in said


def test_the_files_that_the_page_names_are_there():
    """Paths of the repository that the page names are there."""
    named = set(re.findall(r"`((?:config|profiles|tests|docs|envs)/[\w./-]*)`", PAGE))
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []

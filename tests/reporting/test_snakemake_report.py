"""What `snakemake --report` is of, and what it says where nothing is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment import base_files, load_files
from entropy_valley.reporting import reports, snakemake_report

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("tables/cost", "tables/paper_comparison")  # one that is not made, and one that may need its numbers


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The demo's config and its reports, in a folder of its own."""
    experiment = load_files([*base_files(ROOT), ROOT / "config/demo.yaml"])
    monkeypatch.chdir(tmp_path)
    return experiment, reports.ready(experiment, reports.configured(experiment))


def write(*paths):
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def made(ready, *without):
    shown = [f"results/demo/{path}.{end}" for path, one in ready.items() for end in one.endings if path not in without]
    return [name for name in shown if name.endswith((".html", ".csv", ".png"))]


def test_a_report_is_asked_for():
    assert snakemake_report.asked(["snakemake", "--report", "report.zip"])
    assert snakemake_report.asked(["snakemake", "--report=report.zip"])
    assert not snakemake_report.asked(["snakemake", "--report-stylesheet", "a.css"])


def test_it_is_of_all_that_is_there_with_the_pdf(demo):
    write(*made(demo[1]))
    assert snakemake_report.targets(*demo) == made(demo[1])
    write("results/demo/report.pdf")
    assert snakemake_report.targets(*demo) == [*made(demo[1]), "results/demo/report.pdf"]


def test_what_is_not_made_yet_is_left_out_and_said(demo, capsys):
    write(*made(demo[1]), "results/demo/report.pdf")
    Path("results/demo/tables/cost.html").unlink()
    assert snakemake_report.targets(*demo) == made(demo[1], *LEFT_OUT)
    assert capsys.readouterr().err == "not made yet, so not in the report: tables/cost\n"


def test_where_nothing_is_there_it_says_what_to_type(demo):
    write(
        "profiles/demo/config.yaml", "config/demo.yaml", "profiles/default/config.yaml", "results/demo/tables/main.html"
    )
    Path("profiles/demo/config.yaml").write_text("configfile: [config/demo.yaml]\n")
    Path("config/demo.yaml").write_text("results: results/demo\n")
    experiment = demo[0].model_copy(update={"results": "results"})
    typed = r"For the results that are there, type: snakemake --workflow-profile demo --report report\.zip$"
    with pytest.raises(InputError, match=typed):
        snakemake_report.targets(experiment, demo[1])
    Path("results/demo/tables/main.html").unlink()
    with pytest.raises(InputError, match="give --report the same --workflow-profile or --configfile as that run"):
        snakemake_report.targets(experiment, demo[1])

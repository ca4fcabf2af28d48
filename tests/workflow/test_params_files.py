"""A rule's params travel as a file: the system takes no argument beyond 128 KiB."""

from __future__ import annotations

import json

import yaml

from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.paths import ParamsFile
from entropy_valley.reporting import reports

LIMIT = 128 * 1024  # bytes of one argument, on Linux
SEEDS = {"matrix": {"seeds": list(range(1, 31))}}
TABLE = "results/tables/crossbb.csv"


def test_a_table_of_thirty_seeds_is_made(paper):
    """Its inputs are there; no other rule is considered, so that thousands of jobs are not planned."""
    config = paper.folder / "seeds.yaml"
    config.write_text(yaml.safe_dump(SEEDS))
    experiment = load_files([*base_files(paper.folder), config])
    report = reports.configured(experiment)[TABLE.removeprefix("results/").removesuffix(".csv")]
    params = report.params(experiment)
    assert len(params) > LIMIT
    for path in map(paper.folder.joinpath, report.inputs(experiment)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    planned = paper.dry_run("-p", "--allowed-rules", "table", "--cores", "1", TABLE, over=SEEDS)
    assert "results/params/" in planned
    assert not (paper.folder / "results/params").exists()
    paper.run("--allowed-rules", "table", "--cores", "1", TABLE, over=SEEDS)
    (path,) = (paper.folder / "results/params").iterdir()
    assert json.loads(path.read_text()) == json.loads(params)
    assert not paper.planned("--allowed-rules", "table", "--cores", "1", TABLE, over=SEEDS)


def test_snakemake_compares_the_text_and_a_command_has_the_path(tmp_path):
    text = '{"selector":{"ratios":[0.7]}}'
    planned, due = (ParamsFile(text, str(tmp_path), lambda dry=dry: dry) for dry in (True, False))
    assert repr(planned) == repr(text)
    assert json.loads(planned) == json.loads(text)
    command = f"{planned}"
    assert not list(tmp_path.iterdir())
    assert f"{due}" == command
    (path,) = tmp_path.iterdir()
    assert (str(path), path.read_text()) == (command, text)
    path.write_text("{}")  # as a stranger's edit
    assert f"{due:>4}" == command
    assert path.read_text() == text

"""The jobs that Snakemake lists for a config, without starting a Python for each dry run."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import forked_snakemake
import yaml

from entropy_valley import tables
from entropy_valley.config import base_files
from entropy_valley.config.load import load_merged, merge
from entropy_valley.runs import JOBS, jobs

ROOT = Path(__file__).parents[1]


def jobs_of(over: dict[str, Any], *between: str) -> jobs.Jobs:
    """The jobs of the paper's config with files of the repository and something else laid over it."""
    told = _told(json.dumps(over), between)
    experiment = load_merged(told["config"], further=tables.problems)
    return jobs.Jobs(experiment, (jobs.Job.of(experiment, one) for one in told["jobs"]))


@functools.cache
def _told(over: str, between: tuple[str, ...]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        config, out = Path(folder, "over.yaml"), Path(folder, "jobs.json")
        config.write_text(yaml.safe_dump(json.loads(over)))
        files = [*(str(ROOT / name) for name in between), str(config)]
        command = ["-n", "-F", "--nolock", "--logger", "entropy-valley", "--snakefile", str(ROOT / "Snakefile")]
        variables = {**os.environ, JOBS: str(out)}
        status, text = forked_snakemake.run(Path(folder), [*command, "--configfile", *files], variables)
        assert status == 0 and out.is_file(), text
        return json.loads(out.read_bytes())


def config_of(over: dict[str, Any], *between: str) -> dict[str, Any]:
    """The same config, merged."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "over.yaml")
        config.write_text(yaml.safe_dump(over))
        return merge([*base_files(ROOT), *(ROOT / name for name in between), config])

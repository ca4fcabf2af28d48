"""The jobs that Snakemake lists for a config, without starting a Python for each dry run."""

import functools
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import forked_snakemake
import yaml

from entropy_valley.experiment.config import base_files
from entropy_valley.experiment.config.load import merge
from entropy_valley.experiment.runs import JOBS, jobs

ROOT = Path(__file__).parents[1]


def jobs_of(over: dict[str, Any], *between: str) -> jobs.Jobs:
    """All jobs of the paper's config with files of the repository and something else laid over it."""
    return jobs.of_dry_run(_told(json.dumps(over), between))


def planned_of(over: dict[str, Any], *between: str) -> jobs.Jobs:
    """Those that have to run, by the results in the working directory. Snakemake knows nothing of these but times."""
    return jobs.of_dry_run(_told.__wrapped__(json.dumps(over), between, Path()))


@functools.cache
def _told(over: str, between: tuple[str, ...], place: Path | None = None) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        config, out = Path(folder, "over.yaml"), Path(folder, "jobs.json")
        config.write_text(yaml.safe_dump(json.loads(over)))
        files = [*(str(ROOT / name) for name in between), str(config)]
        command = ["-n", "--nolock", "--logger", "entropy-valley", "--snakefile", str(ROOT / "Snakefile")]
        command += ["-F"] * (place is None)
        variables = {**os.environ, JOBS: str(out)}
        status, text = forked_snakemake.run(place or Path(folder), [*command, "--configfile", *files], variables)
        assert status == 0 and out.is_file(), text
        return out.read_bytes()


def config_of(over: dict[str, Any], *between: str) -> dict[str, Any]:
    """The same config, merged."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "over.yaml")
        config.write_text(yaml.safe_dump(over))
        return merge([*base_files(ROOT), *(ROOT / name for name in between), config])

"""A copy of the workflow whose jobs only touch their outputs: what would run is then asked of Snakemake itself."""

from __future__ import annotations

import copy
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import forked_snakemake
import yaml

ROOT = Path(__file__).parents[2]
COMPARED = ("oracle", "ratio", "ev")
METHODS = (*COMPARED, "cal")
# A backbone of either kind, so that fetching and pre-training are both there, and a method that is fitted to each run.
MIXED = {
    "matrix": {
        "backbones": ["llada-tiny", "dream-7b"],
        "directions": ["en-zh", "en-de"],
        "seeds": [1, 2],
        "seeds_of": {"dream-7b": [1], "llama3-tiny": [1]},
        "methods": ["oracle", "ratio", "ev", "cal"],
    },
    "backbones": {"llada-tiny": {"pretrained": None}},
    "autoregressive": {"backbones": ["llama3-tiny"]},
    "valley": {"backbones": []},
}

# Stands for every script: it makes the outputs.
STUB = """
from pathlib import Path

for path in snakemake.output:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).touch()
"""


class Workspace:
    """A folder with a copy of the workflow, run with configs laid over each other; ``real`` jobs do their work."""

    def __init__(self, folder: Path, *configs: str | dict[str, Any], real: bool = False) -> None:
        self.folder, self.configs = folder, configs
        for name in ("Snakefile", "config.yaml"):
            shutil.copy(ROOT / name, folder)
        for name in ("config", "envs", "profiles", "workflow"):
            shutil.copytree(ROOT / name, folder / name)
        (folder / "slurm").symlink_to("profiles/slurm")
        (folder / "bin").mkdir()
        if not real:
            for script in (folder / "workflow/scripts").glob("*.py"):
                script.write_text(STUB)

    def copied(self, folder: Path) -> Workspace:
        """The same in another folder, with all that has been made."""
        shutil.copytree(self.folder, folder, symlinks=True)
        other = copy.copy(self)
        other.folder = folder
        return other

    def run(
        self,
        *arguments: str,
        over: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        fails: bool = False,
    ) -> str:
        """What Snakemake prints; ``over`` is laid over the workspace's configs. ``fails``: it ends with an error."""
        variables = self._variables(environment)
        status, text = forked_snakemake.run(self.folder, [*arguments, *self._options(over)], variables)
        assert (status != 0) == fails, text
        return text

    def start(
        self, *arguments: str, over: dict[str, Any] | None = None, environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Snakemake and its jobs as a process group of their own."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments, *self._options(over)],
            cwd=self.folder,
            env=self._variables(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A shell lets what it runs in the background, as these tests perhaps, ignore Ctrl-C: not what they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def finish(self, *targets: str, over: dict[str, Any] | None = None) -> None:
        """Make the state after a run of all jobs: empty outputs, which Snakemake then takes as its own."""
        text = self.dry_run("-p", "--forceall", *targets, over=over)
        for paths in re.findall(r"^    output: (.*)$", text, flags=re.MULTILINE):
            for path in paths.split(", "):
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / path).touch()
        self.run("--touch", "--forceall", "--cores", "1", *targets, over=over)

    def dry_run(self, *arguments: str, **options: Any) -> str:
        """What Snakemake prints that it would run."""
        return self.run("--dry-run", *arguments, **options)

    def _variables(self, environment: dict[str, str] | None) -> dict[str, str]:
        """The environment; programs are searched among stubs first, then beside this Python."""
        variables = {**os.environ, **(environment or {})}
        return variables | {"PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{variables['PATH']}"}

    def _options(self, over: dict[str, Any] | None) -> list[str]:
        names = self.config_files(over)
        return ["--configfile", *names] if names else []

    def config_files(self, over: dict[str, Any] | None = None) -> list[str]:
        """The configs as files in the folder."""
        configs = [*self.configs, *([over] if over else [])]
        return [self._written(index, config) for index, config in enumerate(configs)]

    def _written(self, index: int, config: str | dict[str, Any]) -> str:
        if isinstance(config, str):
            return config
        name = f"over{index}.yaml"
        (self.folder / name).write_text(yaml.safe_dump(config))
        return name

    def planned(self, *arguments: str, over: dict[str, Any] | None = None) -> Counter[str]:
        """The jobs of a dry run."""
        return self.jobs(self.dry_run("--printshellcmds", *arguments, over=over))

    @staticmethod
    def jobs(text: str) -> Counter[str]:
        """The jobs that a dry run with ``-p`` prints, as ``rule wildcard.wildcard…``."""
        blocks = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE)
        return Counter(" ".join([rule, *_wildcards(body)]) for rule, body in blocks)


def _wildcards(body: str) -> list[str]:
    line = re.search(r"^    wildcards: (.*)$", body, flags=re.MULTILINE)
    values = [part.split("=")[1] for part in line[1].split(", ")] if line else []
    return [".".join(values)] if values else []


def sets(runs, name="matrix"):
    """The translations and scores of a set of these runs, by the name that `planned` gives them."""
    return {f"{rule} {run}.{name}" for run in runs for rule in ("translate", "score")}


def on_gpu(text):
    """How many jobs of each rule ask for a GPU, from what a dry run prints of each job."""
    blocks = re.findall(r"^rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE)
    return Counter(rule for rule, body in blocks if re.search(r"resources: .*gpu=[1-9]", body))


def by_rule(planned):
    return Counter(job.split()[0] for job in planned)

"""A copy of the workflow whose jobs only touch their outputs: what would run is then asked of Snakemake itself."""

from __future__ import annotations

import copy
import os
import re
import shutil
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
ENDINGS = {"canvas": "", "decode": ".med.32", "score": "/med-T32"}

# A backbone of either kind, so that fetching and pre-training are both there, and a method that is fitted to each run.
MIXED = {
    "matrix": {
        "backbones": ["llada-tiny", "dream-7b"],
        "directions": ["en-zh", "en-de"],
        "seeds": [1, 2],
        "seeds_of": {"dream-7b": [1]},
        "methods": ["oracle", "ratio", "ev", "cal"],
    },
    "valley": {"backbones": []},
}

# Stands for every `python workflow/scripts/X.py SPEC --option path …`: makes the paths that are not there yet.
# Inputs always are; Snakemake touches the outputs of a job that it repeats.
STUB = """#!/bin/bash
script=$(basename "$1" .py); shift 2
for path in "$@"; do
  case "$path" in --out) folder=1; continue;; --*) folder=0; continue;; *=*) continue;; */*) ;; *) continue;; esac
  case "$folder $script" in
    "1 train"|"1 adopt_adapter") path="$path/adapter.json";;
    "1 pretrain") path="$path/checkpoint.json";;
    "1 train_comet") path="$path/comet.json";;
  esac
  [ -e "$path" ] && continue
  mkdir -p "$(dirname "$path")"; touch "$path"
done
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
            (folder / "bin" / "python").write_text(STUB)
            (folder / "bin" / "python").chmod(0o755)

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
        """Snakemake's own words; ``over`` is laid over the workspace's configs. ``fails``: it ends with an error."""
        command = [sys.executable, "-m", "snakemake", *arguments, *self._options(over)]
        variables = {**os.environ, **(environment or {})}
        variables["PATH"] = self._path(variables["PATH"])
        finished = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True)
        assert (finished.returncode != 0) == fails, finished.stdout + finished.stderr
        return finished.stdout + finished.stderr

    def dry_run(self, *arguments: str, over: dict[str, Any] | None = None) -> str:
        """What Snakemake says that it would run."""
        options = ["--dry-run", *arguments, *self._options(over)]
        status, said = forked_snakemake.run(self.folder, options, self._path(os.environ["PATH"]))
        assert status == 0, said
        return said

    def _path(self, path: str) -> str:
        """Where programs are searched: stubs first, then beside this Python."""
        return f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{path}"

    def _options(self, over: dict[str, Any] | None) -> list[str]:
        configs = [*self.configs, *([over] if over else [])]
        names = [self._written(index, config) for index, config in enumerate(configs)]
        return ["--configfile", *names] if names else []

    def _written(self, index: int, config: str | dict[str, Any]) -> str:
        if isinstance(config, str):
            return config
        name = f"over{index}.yaml"
        (self.folder / name).write_text(yaml.safe_dump(config))
        return name

    def planned(self, *arguments: str, over: dict[str, Any] | None = None) -> Counter[str]:
        """The jobs that a dry run names, as ``rule wildcard.wildcard…``."""
        text = self.dry_run("--printshellcmds", *arguments, over=over)
        blocks = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE)
        return Counter(" ".join([rule, *_wildcards(body)]) for rule, body in blocks)


def _wildcards(body: str) -> list[str]:
    line = re.search(r"^    wildcards: (.*)$", body, flags=re.MULTILINE)
    return [".".join(part.split("=")[1] for part in line[1].split(", "))] if line else []


def jobs(runs, methods=METHODS):
    """The jobs of these runs and methods, by the name that `planned` gives them."""
    names = {f"{run}.grammar.{method}" for run in runs for method in methods}
    return {f"{rule} {name}{ending}" for rule, ending in ENDINGS.items() for name in names}


def by_rule(planned):
    return Counter(job.split()[0] for job in planned)

"""Copy the tables that the pages quote into docs/numbers/results, and say there what made them: `make findings`.

python docs/keep_tables.py results/findings config/findings.yaml     # run in the checkout that made the results
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from check_numbers import RESULTS, all_numbers

from entropy_valley import files, machine


def quoted(name: str) -> list[str]:
    """The tables of results of this name that files of docs/numbers mention."""
    text = "".join(path.read_text(encoding="utf-8") for path in all_numbers())
    return sorted(set(re.findall(rf"^{re.escape(name)}/(\S+\.csv)", text, re.MULTILINE)))


def commit() -> str:
    """The checkout's commit. Raises where it has changes that no commit has."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()

    if changes := git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{RESULTS}"):
        raise SystemExit(f"Commit these first, so that the tables have a commit:\n{changes}")
    return git("rev-parse", "HEAD")


def keep(results: Path, config: str) -> None:
    """Replace the tables of ``docs/numbers/results/NAME``."""
    origin = {"commit": commit(), "config": config, "machine": machine.description()}
    target = RESULTS / results.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for table in quoted(results.name):
        shutil.copy(results / "tables" / table, target / table)
    files.write_json(target / "origin.json", origin)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2])

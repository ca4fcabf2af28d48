"""Check whether the jobs of a config will run on this machine, and how fast; each check is a line of the log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from entropy_valley import files, run
from entropy_valley.checking import checks
from entropy_valley.checking.subject import Subject


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--out", type=Path, required=True, help="the lines, if no check has failed")
    options = parser.parse_args()
    lines = checks.report(checks.everything(Subject(**options.spec)), sys.stderr)
    files.write_text(options.out, "".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    run.script(main)

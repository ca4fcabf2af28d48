"""Write the form of one annotator: a spreadsheet, the same as CSV, and a page to fill it in on."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import run
from entropy_valley.human_evaluation import forms, page
from entropy_valley.human_evaluation.pack import Pack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--annotator", required=True)
    for kind in ("xlsx", "csv", "html"):
        parser.add_argument(f"--{kind}", type=Path, required=True, help="output")
    options = parser.parse_args()
    pack = Pack.read(options.pack)
    forms.write_xlsx(options.xlsx, pack, options.annotator)
    forms.write_csv(options.csv, pack)
    page.write(options.html, pack, options.annotator)


if __name__ == "__main__":
    run.script(main)

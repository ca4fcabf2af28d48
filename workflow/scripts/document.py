"""Write the document of all tables and figures, and set it: document.py PARAMS --tex TEX, document.py TEX --pdf PDF"""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, run
from entropy_valley.reporting import document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="its items as a JSON file or as JSON; with --pdf the document")
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--tex", type=Path)
    kinds.add_argument("--pdf", type=Path)
    options = parser.parse_args()
    if options.pdf:
        document.typeset(Path(options.source), options.pdf)
    else:
        items = [document.Item(*item) for item in run.params(options.source)]
        files.write_text(options.tex, document.to_latex(items, options.tex.parent))


if __name__ == "__main__":
    run.script(main)

"""Make a table or a figure: report.py KEY PARAMS, then a path for each of its endings: --tex T --md M --csv C, …

`--caption=TEXT` is what stands below it, where its LaTeX has that.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.analysis.alike import require_alike
from entropy_valley.reporting import reports

RULES = {
    ("tex", "float.tex", "md", "html", "csv"): "table",
    ("pdf", "png", "csv"): "figure",
    ("html", "md", "csv"): "comparison",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="its name in the registry, such as tables/main")
    parser.add_argument("params", help="a JSON file, or JSON")
    parser.add_argument("--caption", default="", help="its text in print")
    kind = reports.find(parser.parse_known_args()[0].report)
    for ending in kind.endings:
        parser.add_argument(f"--{ending}", dest=ending, type=Path, required=True)
    paths = vars(parser.parse_args())
    key, given, caption = (paths.pop(name) for name in ("report", "params", "caption"))
    report = kind(key, paths["csv"].stem, caption)
    params = report.parsed.parse(given)
    with provenance.made(RULES[report.endings], run.params(given), [], list(paths.values())) as record:
        if "decoding.json" in report.read:
            record.facts["length_methods"] = require_alike(params.cells)
        with files.watched(record.read):
            report.write(params, **paths)


if __name__ == "__main__":
    run.script(main)

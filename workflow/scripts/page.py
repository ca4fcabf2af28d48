"""Make the page of a test set's sentences: page.py PARAMS --html PATH."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, provenance, run
from entropy_valley.reporting.pages import sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("params", help="a JSON file, or JSON")
    parser.add_argument("--html", type=Path, required=True, help="output")
    options = parser.parse_args()
    params = sentences.PageParams.parse(options.params)
    making = provenance.made("page", run.params(options.params), [], [options.html])
    with making as record, files.watched(record.read):
        sentences.write(options.html, params)


if __name__ == "__main__":
    run.script(main)

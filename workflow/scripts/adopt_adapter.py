"""Take a finished adapter over in place of a training: any folder or hub repository that PEFT saved."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from entropy_valley import errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=json.loads, help="the rule's slice of the config, as JSON")
    parser.add_argument("--backbone", type=Path, required=True, help="checkpoint folder in its released layout")
    parser.add_argument("--folder", type=Path, help="the adapter; without one the spec's repository is fetched")
    parser.add_argument("--work", type=Path, required=True, help="where a download goes, outside any declared output")
    parser.add_argument("--out", type=Path, required=True, help="adapter folder, written whole")
    arguments = vars(parser.parse_args())

    from entropy_valley.training import adoption

    adoption.adopt(adoption.Job(**arguments))


if __name__ == "__main__":
    errors.run(main)

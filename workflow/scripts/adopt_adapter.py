"""Adopt a given adapter instead of training: a folder or hub repository in PEFT's layout."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import provenance, run
from entropy_valley.backbone.adapter_card import write_card
from entropy_valley.backbone.adapters import FACTS
from entropy_valley.backbone.checkpoint import checkpoint_digest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--backbone", type=Path, required=True, help="checkpoint folder in its released layout")
    parser.add_argument("--folder", type=Path, help="the adapter; without it the repository in the params is fetched")
    parser.add_argument("--work", type=Path, required=True, help="where a download goes, outside any declared output")
    parser.add_argument("--out", type=Path, required=True, help="adapter folder, written whole")
    arguments = vars(parser.parse_args())

    from entropy_valley.training import adoption

    job = adoption.Job(**arguments)
    backbone = {job.backbone: checkpoint_digest(job.backbone)}
    with provenance.made("adopt_adapter", job.spec, [], [job.out / FACTS], known=backbone, whole_folder=True):
        adoption.adopt(job)
    write_card(job.out)  # behind the record: it may be edited


if __name__ == "__main__":
    run.script(main)

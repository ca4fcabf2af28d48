"""The record of what a job of a model makes, from its command line."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path

from entropy_valley import provenance
from entropy_valley.backbone.adapters import FACTS
from entropy_valley.backbone.checkpoint import MANIFEST
from entropy_valley.engine.job import Job
from entropy_valley.provenance import Record

READ = ("testset", "canvas", "of", "dev", "statistics", "length_head")  # options that name files which a job reads
WRITTEN = ("out", "info")


def made(rule: str, job: Job, options: argparse.Namespace) -> AbstractContextManager[Record]:
    """Keeps the record of what the block makes from the files of the options, the backbone and the adapter."""
    given = vars(options)
    read, written = ([given[name] for name in names if given.get(name)] for names in (READ, WRITTEN))
    folders = {options.backbone: job.identity.backbone_digest}
    said = [options.backbone / MANIFEST]
    if options.adapter:
        folders[options.adapter] = job.identity.adapter_digest
        said.append(options.adapter / FACTS)
    return provenance.made(rule, job.spec, [*read, *filter(Path.is_file, said)], written, known=folders)

"""The command lines of the jobs that run a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import run
from entropy_valley.backbone.checkpoint import MANIFEST_HELP


def model_arguments(description: str) -> argparse.ArgumentParser:
    """The options of each job on a model; none but the spec and the files can change a number."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("spec", type=run.params, help="the rule's params: a JSON file, or JSON")
    parser.add_argument("--backbone", type=Path, required=True, help="a checkpoint folder")
    parser.add_argument("--manifest", type=Path, help=MANIFEST_HELP)
    parser.add_argument("--adapter", type=Path, help="a LoRA adapter folder; without one, the bare backbone")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True, help="folder of finished work, shared between jobs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the model")
    parser.add_argument("--token-budget", type=int, help="most tokens in a forward pass")
    return parser


def arguments(description: str) -> argparse.ArgumentParser:
    """As :func:`model_arguments`, and the test set; such a job may be told to take all from the store, or nothing."""
    parser = model_arguments(description)
    parser.add_argument("--testset", type=Path, required=True)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--no-store", action="store_true", help="neither read nor write finished work")
    where.add_argument(
        "--from-store", action="store_true", help="load no model: a result that the store lacks is an error"
    )
    return parser


def method_arguments(description: str) -> argparse.ArgumentParser:
    """As :func:`arguments`, and the files of the run that some length methods use."""
    return add_method_files(arguments(description))


def add_method_files(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The options for the files of the run that some length methods use."""
    parser.add_argument("--statistics", type=Path, help="length statistics of the run, for a method that uses them")
    parser.add_argument("--length-head", type=Path, help="length head of the run, for a method that uses it")
    return parser

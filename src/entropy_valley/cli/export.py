"""`entropy-valley export` and `mt-metrics-eval`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from entropy_valley.cli import configs
from entropy_valley.tables import mt_metrics_eval


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "export", help="write an adapter for PEFT on the model class of its authors, with a model card for the hub"
    )
    parser.add_argument("adapter", type=Path, help="an adapter folder, from training or from PEFT")
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument(
        "--layout",
        choices=("released", "stock"),
        default="released",
        help="module names of the authors' class, or of the stock transformers class (ours)",
    )
    parser.add_argument("--family", help="family of the backbone; only for an adapter without adapter.json")
    parser.set_defaults(command=_export)

    parser = commands.add_parser("mt-metrics-eval", help="write the finished cells as mt-metrics-eval reads them")
    parser.add_argument("out", type=Path, help="a new folder")
    configs.add(parser)
    parser.set_defaults(command=_mt_metrics_eval)


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.model import adapters

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)
    adapters.write_card(arguments.out, arguments.layout)


def _mt_metrics_eval(arguments: argparse.Namespace) -> None:
    print(*mt_metrics_eval.export(configs.experiment(arguments.configfile), arguments.out), sep="\n")

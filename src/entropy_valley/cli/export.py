"""`entropy-valley export`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    parser = commands.add_parser("export", help="write an adapter for PEFT on the model class of its authors")
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


def _export(arguments: argparse.Namespace) -> None:
    from entropy_valley.backbone import adapters

    adapters.export(arguments.adapter, arguments.out, arguments.layout, arguments.family)

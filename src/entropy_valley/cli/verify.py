"""`entropy-valley verify`: does every table of a folder of results follow from its texts?"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley.cli import configs
from entropy_valley.errors import brief, listed

if TYPE_CHECKING:
    from entropy_valley.verification import Report

LISTED = 40  # differences that are printed, unless all are wanted
WIDTH = 60


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "verify",
        help="say whether the tables of a folder of results follow from its texts",
        description="Compute all that is in a folder of results again, by code of its own. Ends with status 1 where "
        "something differs.",
    )
    parser.add_argument("results", type=Path, help="the folder of results, such as results")
    parser.add_argument("--comet", type=Path, metavar="FILE", help="a COMET checkpoint, .ckpt or its folder")
    again = "also decode N sentences of each run again, on this machine"
    parser.add_argument("--translate", type=configs.count, metavar="N", help=again)
    parser.add_argument("--device", help="of --translate: cpu, cuda or cuda:N; default: a GPU where there is one")
    parser.add_argument("--all", action="store_true", help=f"list all differences, not only {LISTED}")
    parser.set_defaults(command=_verify)


def _verify(arguments: argparse.Namespace) -> None:
    from entropy_valley import verification
    from entropy_valley.verification import again

    folder, report = verification.verify(arguments.results, arguments.comet)
    if arguments.translate:
        again.check(folder, report, arguments.translate, arguments.device)
    print("\n".join(_lines(report, None if arguments.all else LISTED)))
    if folder.others:
        print(f"\nNot read, since they are results of their own: {listed(folder.others)}")
    if report.differences:
        sys.exit(1)


def _lines(report: Report, most: int | None) -> list[str]:
    differs = Counter(one.part for one in report.differences)
    parts = dict.fromkeys([*report.same, *differs, *report.unchecked])
    ordered = sorted(parts, key=lambda part: part if part.endswith(".csv") else "")  # tables and figures come last
    rows = [(part, report.same[part], differs[part], report.unchecked[part].total()) for part in ordered]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = [f"{'':<{WIDTH}}{'same':>10}{'differs':>10}{'not checkable':>16}"]
    lines += [f"{brief(part, WIDTH):<{WIDTH}}{same:>10,}{other:>10,}{none:>16,}" for part, same, other, none in rows]
    reasons: Counter[str] = sum(report.unchecked.values(), Counter())
    lines += ["", "Not checkable:"] if reasons else []
    lines += [f"{count:>10,}  {reason}" for reason, count in reasons.most_common()]
    if report.margins:
        largest = max(report.margins.values())
        after = f"after decisions within {largest:.3g} nats"
        lines += ["", f"Other tokens in a low precision: {len(report.margins)}, {after}"]
        lines += [f"  {place}" for place in [*report.margins][:most]]
    if report.differences:
        lines += ["", "Differs:", *map(str, report.differences[:most])]
        left = len(report.differences) - len(report.differences[:most])
        lines += [f"… and {left:,} more; --all lists them"] * (left > 0)
    return lines

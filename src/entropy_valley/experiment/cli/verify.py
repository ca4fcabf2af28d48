"""`entropy-valley verify`: does everything in a folder of results follow from its texts?"""

import argparse
import sys
from collections import Counter

from entropy_valley.errors import brief
from entropy_valley.experiment import verification
from entropy_valley.experiment.verification import Report

WIDTH = 60


def verify(arguments: argparse.Namespace) -> None:
    report = verification.verify(arguments.results, arguments.comet, arguments.translate or 0, arguments.own_classes)
    print("\n".join(_lines(report)))
    if report.differences:
        sys.exit(1)


def _lines(report: Report) -> list[str]:
    differs = Counter(part for part, _ in report.differences)
    parts = dict.fromkeys([*report.same, *differs, *report.unchecked])
    ordered = sorted(parts, key=lambda part: part if "/" in part else "")  # tables, figures and pages come last
    rows = [(part, report.same[part], differs[part], report.unchecked[part].total()) for part in ordered]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = [f"{'':<{WIDTH}}{'same':>10}{'differs':>10}{'not checkable':>16}"]
    lines += [f"{brief(part, WIDTH):<{WIDTH}}{same:>10,}{other:>10,}{none:>16,}" for part, same, other, none in rows]
    reasons: Counter[str] = sum(report.unchecked.values(), Counter())
    lines += ["", "Not checkable:"] if reasons else []
    lines += [f"{count:>10,}  {reason}" for reason, count in reasons.most_common()]
    if report.differences:
        lines += ["", "Differs (what is stored → what follows):", *(line for _, line in report.differences)]
    return lines

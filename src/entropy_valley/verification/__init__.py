"""A second opinion on a folder of results: does every table follow from its texts?

It calls nothing that makes scores or tables, so that an error there is not made twice. Read in this order:
:mod:`.folder` (what is read, and the report), :mod:`.sets` (rows: texts, canvases, costs, scores), :mod:`.cells` and
:mod:`.numbers` (what tables have in common), :mod:`.systems` and :mod:`.sentences` (their rows), :mod:`.tables` (every
cell of the CSV files), :mod:`.again` (sentences that are decoded again).

The folder may be anybody's: nothing in it is executed, and what cannot be read is an InputError.
"""

from __future__ import annotations

from pathlib import Path

from entropy_valley.verification import sets, tables
from entropy_valley.verification.folder import HEADERS, Folder, Report

__all__ = ["HEADERS", "Folder", "Report", "verify"]


def verify(root: Path, comet: Path | None = None) -> tuple[Folder, Report]:
    """Check a folder of results. ``comet`` is a checkpoint, where the folder has none of its own."""
    folder, report = Folder(root), Report()
    folder.check_contents(report)
    folder.check_seals(report)
    sets.check(folder, report, comet)
    tables.check(folder, report)
    return folder, report

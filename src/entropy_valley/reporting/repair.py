"""Damaged results: what is deleted so that the next run makes them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from entropy_valley import digest_cache
from entropy_valley.experiment import Experiment, repair
from entropy_valley.experiment.audit import Audit
from entropy_valley.experiment.repair import Damage
from entropy_valley.reporting.audit import is_asked

DELETED = "Deleted. The next run makes it again, and what is made from it; work that is in the store is not repeated."
LISTED = "Nothing was deleted. With --yes these files are; the next run makes them again, and what is made from them."


def report(
    experiment: Experiment, delete: bool, only: Mapping[str, Sequence[str]] | None = None, verify: bool = False
) -> None:
    """Print what is damaged, and the files to delete; with ``delete`` delete them. ``only`` and ``verify`` as in
    :func:`.audit.report`.

    Raises InputError where files are to be deleted while Snakemake runs.
    """
    with digest_cache.reading_all(verify):
        audit = Audit(experiment)
        cells = [one.cell for one in audit.cells() if is_asked(one, only or {})]
        damages = [
            *repair.of_results(audit, cells).values(),
            *([] if any((only or {}).values()) else repair.beside(audit)),
        ]
    audit.written.digests.keep()
    for one in damages:
        print(*_lines(one), sep="\n")
    if delete:
        repair.remove(experiment.results, damages)
    print((DELETED if delete else LISTED) if damages else "Nothing is damaged.")


def _lines(one: Damage) -> list[str]:
    """The rule, the place and the reason; then what is deleted."""
    head = f"{one.rule}: {one.place}: {one.why}"
    if not one.remove:
        return [head, "    nothing to delete: restore it, or run again if a file is lost"]
    part = f", only {len(one.lines)} of its lines" if one.lines else ""
    return [head, *(f"    {path}{part}" for path in one.remove)]

"""Write the main table: main_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.main_table import main_table


def main() -> None:
    spec, summary, paths = command.read(__doc__, ("tex", "csv", "md"))
    tables.write(main_table(spec, summary, notes.provenance(spec)), summary, **paths)


if __name__ == "__main__":
    errors.run(main)

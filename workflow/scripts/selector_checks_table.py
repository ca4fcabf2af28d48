"""Write the table of selector checks: selector_checks_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.selector_checks import SelectorSpec, measure
from entropy_valley.reporting import command, notes
from entropy_valley.reporting.selector_checks_table import selector_checks_table
from entropy_valley.reporting.tables import write


def main() -> None:
    spec, paths = command.arguments(__doc__, ("tex", "csv", "md"), SelectorSpec)
    numbers = measure(spec)
    write(selector_checks_table(spec, numbers, notes.provenance(spec)), numbers, **paths)


if __name__ == "__main__":
    errors.run(main)

"""Write the step budget table: budgets_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.costs import with_costs
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.budgets_table import budgets_table


def main() -> None:
    spec, summary, paths = command.read(__doc__, ("tex", "csv", "md"))
    summary = with_costs(summary, spec.cells)
    tables.write(budgets_table(spec, summary, notes.provenance(spec)), summary, **paths)


if __name__ == "__main__":
    errors.run(main)

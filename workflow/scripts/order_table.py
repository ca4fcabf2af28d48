"""Write the table of a study of reveal orders: order_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.order_sweep import OrderSpec, order_sweep
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.order_table import order_table


def main() -> None:
    spec, paths = command.arguments(__doc__, ("tex", "csv", "md"), OrderSpec)
    numbers = order_sweep(spec)
    tables.write(order_table(spec, numbers, notes.provenance(spec)), numbers, **paths)


if __name__ == "__main__":
    errors.run(main)

"""Write the instruction-tuned backbone's table: dream_instruct_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.instruct import InstructSpec, measure
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.dream_instruct_table import dream_instruct_table


def main() -> None:
    spec, paths = command.arguments(__doc__, ("tex", "csv", "md"), InstructSpec)
    numbers = measure(spec)
    tables.write(dream_instruct_table(spec, numbers, notes.provenance(spec)), numbers, **paths)


if __name__ == "__main__":
    errors.run(main)

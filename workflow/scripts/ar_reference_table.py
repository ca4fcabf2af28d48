"""Write the table of matched-data baselines: ar_reference_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.comparisons import compare_autoregressive
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.ar_reference_table import ar_reference_table, numbers


def main() -> None:
    spec, summary, paths = command.read(__doc__, ("tex", "csv", "md"))
    made_by = notes.provenance(spec)  # only numbers of one metric and data set may be subtracted
    tests = compare_autoregressive(spec.cells, resamples=spec.resamples, seed=spec.seed)
    tables.write(ar_reference_table(spec, summary, tests, made_by), numbers(summary, tests), **paths)


if __name__ == "__main__":
    errors.run(main)

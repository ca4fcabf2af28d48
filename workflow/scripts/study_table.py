"""Write the table of a study: study_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.study import StudySpec, study
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.study_table import study_table


def main() -> None:
    spec, paths = command.arguments(__doc__, ("tex", "csv", "md"), StudySpec)
    frame = study(spec)
    tables.write(study_table(spec, frame, notes.provenance(spec)), frame, **paths)


if __name__ == "__main__":
    errors.run(main)

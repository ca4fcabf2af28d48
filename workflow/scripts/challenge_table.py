"""Write the table of two reveal orders on a challenge subset: challenge_table.py SPEC --tex T --csv C --md M."""

from __future__ import annotations

from entropy_valley import errors
from entropy_valley.analysis.challenge import ChallengeSpec, negative_order
from entropy_valley.reporting import command, notes, tables
from entropy_valley.reporting.challenge_table import challenge_table


def main() -> None:
    spec, paths = command.arguments(__doc__, ("tex", "csv", "md"), ChallengeSpec)
    numbers = negative_order(spec)
    tables.write(challenge_table(spec, numbers, notes.provenance(spec)), numbers, **paths)


if __name__ == "__main__":
    errors.run(main)

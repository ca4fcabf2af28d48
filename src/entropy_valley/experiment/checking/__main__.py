"""Check this machine before the first job on a GPU: ``python -m entropy_valley.experiment.checking SUBJECT OUT``.

SUBJECT is JSON, the fields of :class:`.subject.Subject`. The lines are printed, and written to OUT if none failed.
"""

import json
import sys

from entropy_valley import errors, files
from entropy_valley.experiment import checking
from entropy_valley.experiment.checking import checks
from entropy_valley.experiment.checking.subject import Subject

with errors.in_one_line():
    subject, out = sys.argv[1:]
    lines = checks.report(checking.everything(Subject(**json.loads(subject))))
    files.write_text(out, "".join(f"{line}\n" for line in lines))

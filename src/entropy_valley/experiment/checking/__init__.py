"""`entropy-valley check`: will the config's jobs run here? Each check ends in one line: ok, failed or skipped.

It trains two steps, and decodes with each backbone beside the plain algorithm. ``thorough`` adds what takes longer.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from entropy_valley.experiment.checking import checks
from entropy_valley.experiment.checking.subject import Subject


def everything(subject: Subject, thorough: bool = False) -> Iterator[checks.Line]:
    """The lines of all checks, as soon as they are known. Without the device, the rest is not tried."""
    device = partial(checks.gpus, subject.device, subject.precision)
    for line in checks.run([("torch", checks.torch_build), ("GPUs", device)]):
        yield line
        if line.state == checks.FAILED:
            return
    from entropy_valley.experiment.checking import computations

    with tempfile.TemporaryDirectory(prefix="entropy-valley-check-") as folder:
        yield from checks.run(computations.listed(subject, Path(folder), thorough))

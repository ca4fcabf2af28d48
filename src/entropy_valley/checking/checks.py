"""All checks in their order: first the installation, then the device, then what is computed on it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TextIO

from entropy_valley.checking import machine
from entropy_valley.checking.line import FAILED, SKIPPED, Check, Line, run
from entropy_valley.checking.subject import Subject

_NEEDED = ("torch", "driver", "device")  # without them, the others would all say the same


def report(lines: Iterable[Line], to: TextIO | None = None) -> list[Line]:
    """Print each line as soon as it is known. Exits with status 1 if a check has failed."""
    done = []
    for line in lines:
        print(line, file=to, flush=True)
        done.append(line)
    if any(line.state == FAILED for line in done):
        sys.exit(1)
    return done


def installation(wanted: str = "") -> Iterator[Line]:
    """What `make install` has made, perhaps on a machine without a GPU. ``wanted``: a build of torch, as "cu126"."""
    return run([("torch", partial(machine.torch_build, wanted)), ("driver", machine.driver)])


def everything(subject: Subject) -> Iterator[Line]:
    """What the jobs of a config need of this machine. Files that are made for it are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="entropy-valley-check-") as folder:
        for line in run(_all(subject, Path(folder))):
            yield line
            if line.name in _NEEDED and line.state == FAILED:
                yield Line("all others", SKIPPED, "they need the device", 0.0)
                return


def _all(subject: Subject, folder: Path) -> Iterator[tuple[str, Check]]:
    from entropy_valley.checking import agreement, company, group, metric, speed

    device = subject.device
    yield "torch", machine.torch_build
    yield "driver", partial(machine.driver, device)
    yield "device", partial(machine.device_memory, device)
    # Other processes first: on some clusters, a GPU takes one process, and from the next check on that is this one.
    processes = group.Group(folder / "group", device, subject.processes, _training_precision(subject))
    yield "all_reduce", processes.exchange
    yield "training", processes.training
    yield "bfloat16", partial(machine.bfloat16, device)
    yield "compiler", partial(machine.compiler, device)
    yield "attention", partial(agreement.attention, device)
    yield "engine, float32", partial(agreement.same_texts, folder, device)
    yield "engine, bfloat16", partial(agreement.same_entropies, folder, device)
    yield from company.checks(subject)
    yield "COMET", partial(metric.comet, folder / "comet", device)
    yield from speed.Speed(subject).checks()


def _training_precision(subject: Subject) -> str:
    return subject.training["precision"] if subject.training else subject.precision

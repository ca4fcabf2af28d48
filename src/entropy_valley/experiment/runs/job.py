"""What every script of the workflow does before and after its own work.

A script is ``with job_of(snakemake) as job:`` and the calls of a few library functions. What takes long to load, or
reads the environment when it is loaded, is imported inside the block.
"""

import contextlib
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from entropy_valley import errors, files, machine

ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # torch's variable, and its former name
_held: dict[machine.Gpu, socket.socket] = {}  # the claims on GPUs, until this process ends


class ScriptJob:
    """The job that the object of a script describes.

    ``rule`` is its name in this workflow, see :func:`rule_of`. ``params`` is what the result depends on, as its
    record has it; ``spec`` the same without ``made_from``, as computations and keys use it. ``execution`` says where
    things are and how the job runs. ``input`` and ``output`` are Snakemake's: their items have names or numbers."""

    def __init__(self, snakemake: Any) -> None:
        self.params: dict[str, Any] = json.loads(snakemake.params.spec)
        self.spec = {key: value for key, value in self.params.items() if key != "made_from"}
        self.execution: dict[str, Any] = dict(snakemake.params.get("execution") or {})
        self.rule = rule_of(snakemake.rule, next(iter(snakemake.log), ""))
        self.input, self.output, self.threads = snakemake.input, snakemake.output, snakemake.threads


def rule_of(name: str, log: str) -> str:
    """The name of a rule in this workflow, by its log: a workflow that has this one as a module calls rules otherwise,
    such as ``ev_train``, but leaves their logs in ``logs/train``."""
    logged = re.search(r".*\blogs/(\w+)", log)
    return logged[1] if logged and logged[1] in name else name


@contextlib.contextmanager
def job_of(snakemake: Any, uses_torch: bool = True) -> Iterator[ScriptJob]:
    """The job of a script, from the object that Snakemake gives it.

    What the process says goes into the log. It ends with the process that started it, and what it has started by
    :func:`.machine.run_module` ends with it. It takes as many GPUs as the rule asks for, see
    :mod:`entropy_valley.machine`, checked before the first use where ``execution`` has a ``check``. A job whose
    ``execution`` has no ``confirm`` reads nothing from the network. Bad input ends it with one line and exit status 2.
    With a resource ``requeue_before`` (seconds), it saves its work and requeues itself before its time limit, see
    :func:`.machine.nears_its_limit`. A job that does not use torch spares transformers its import, which takes seconds.
    """
    machine.end_with_parent(signal.SIGTERM, os.getppid())
    with errors.in_one_line():
        if snakemake.log:
            machine.speak_into(snakemake.log[0])
        if number := os.environ.get("SLURM_JOB_ID"):
            errors.note(f"SLURM job {number}")
        job = ScriptJob(snakemake)
        if "confirm" not in job.execution:
            os.environ["HF_HUB_OFFLINE"] = "1"
        if not uses_torch:  # both are transformers' own: without the second it warns that there is no torch
            os.environ |= {"USE_TORCH": "0", "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1"}
        if count := snakemake.resources.get("gpu", 0):
            _held.update(machine.claimed(count, os.environ))
            if _held:
                os.environ[machine.VISIBLE] = ",".join(gpu.visible for gpu in _held)
            if not any(name in os.environ for name in ALLOCATOR):  # passes of many sizes leave fewer gaps
                os.environ[ALLOCATOR[0]] = "expandable_segments:True"
            if check := job.execution.get("check"):  # the `subject` of a check, and the `folder` of what was checked
                require_checked(check["folder"], {**check["subject"], "processes": count})
        if seconds := snakemake.resources.get("requeue_before"):
            os.environ[machine.REQUEUE] = str(seconds)
        yield job


def require_checked(folder: str, subject: Mapping[str, Any]) -> None:
    """Check once whether this environment's jobs run on such GPUs; a check that fails ends this process."""
    environment = [sys.prefix, machine.device_name(subject["device"]), subject]
    passed = Path(folder, f"{files.digest(environment)}.txt")
    with files.locked(passed):  # of jobs that begin together one checks, and the others wait
        if not passed.is_file():
            check_machine(subject, passed)


def check_machine(subject: Mapping[str, Any], out: str | Path) -> None:
    """Do the check in a process of its own, and write its lines to ``out``; one that fails ends this process."""
    if machine.run_module("entropy_valley.experiment.checking", files.canonical(subject), str(out)):
        remedy = "Its log says under `failed` what to correct; `check: false` in the config leaves the check out."
        raise errors.InputError("check", "this machine does not run the jobs of this config", remedy)

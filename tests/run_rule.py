"""Run the script of a rule as Snakemake does, without Snakemake's workflow: in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from snakemake.iocontainers import InputFiles, Log, OutputFiles, Params, ResourceList, Snakemake, Wildcards

from entropy_valley.experiment.runs import job

SCRIPTS = Path(__file__).parents[1] / "workflow" / "scripts"
# Snakemake, too, hands the object over as a pickle.
CHILD = """
import pickle, runpy, sys

path, snakemake = sys.argv[1:]
sys.argv[:] = [path]
runpy.run_path(path, {"snakemake": pickle.loads(bytes.fromhex(snakemake))}, "__main__")
"""


def start_rule(name, spec, input=(), output=(), execution=None, threads=1, gpu=0, log=None, wildcards=None, rule=None):
    """Start the script of the rule, or workflow/scripts/NAME.py; the process.

    ``spec`` is a value, or its JSON. ``input`` and ``output`` are a path, a list, or a dict of paths and lists.
    """
    execution = json.loads(json.dumps(execution, default=_plain))
    spec = spec if isinstance(spec, str) else json.dumps(spec, default=_plain)
    snakemake = snakemake_object(rule or name, spec, input, output, execution, threads, gpu, log, wildcards)
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, script_of(name), pickle.dumps(snakemake).hex()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_rule(name, spec, *arguments, log=None, fails=False, **options):
    """Run what :func:`start_rule` starts; the text of its log. With ``fails`` its exit status must not be 0."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(log or f"{folder}/{name}.log")
        process = start_rule(name, spec, *arguments, log=log, **options)
        text, _ = process.communicate()
        text += log.read_text(encoding="utf-8") if log.exists() else ""
    assert (process.returncode != 0) == fails, f"exit status {process.returncode}\n{text}"
    return text


def snakemake_object(
    rule, spec, input=(), output=(), execution=None, threads=1, gpu=0, log=None, wildcards=None, config=None
):
    """What Snakemake gives the script of a rule."""
    return Snakemake(
        _named(InputFiles, input),
        _named(OutputFiles, output),
        Params(fromdict={"spec": spec if isinstance(spec, str) else json.dumps(spec), "execution": execution or {}}),
        Wildcards(fromdict=wildcards or {}),
        threads,
        ResourceList(fromdict={"_cores": threads, "gpu": gpu} if gpu else {"_cores": threads}),
        _named(Log, log or ()),
        config or {},
        rule,
        None,
        str(SCRIPTS),
    )


def script_of(name):
    """The script of a rule, or of this name."""
    rules = "".join(path.read_text(encoding="utf-8") for path in (SCRIPTS.parent / "rules").glob("*.smk"))
    script = re.search(rf"rule {name}:.*?scripts/(\w+)\.py", rules, re.DOTALL)
    return str(SCRIPTS / f"{script[1] if script else name}.py")


def run_script(name, snakemake):
    """Run the script of a rule, or of this name, in this process, as its own."""
    runpy.run_path(script_of(name), {"snakemake": snakemake}, "__main__")


def run_here(name, spec, input=(), output=(), execution=None, threads=1, rule=None, wildcards=None):
    """The same as :func:`run_rule` in this process, in which a test may have replaced parts; errors are raised."""
    execution = json.loads(json.dumps(execution, default=_plain))
    snakemake = snakemake_object(rule or name, spec, input, output, execution, threads, wildcards=wildcards)
    with mock.patch.object(job, "job_of", lambda given: contextlib.nullcontext(job.ScriptJob(given))):
        run_script(name, snakemake)


def _named(kind, given):
    """Files as Snakemake has them: by number, and by name where they have one."""
    if isinstance(given, str | os.PathLike):
        given = [given]
    if not isinstance(given, dict):
        return kind(toclone=list(map(str, given)))
    files = kind()
    for name, value in given.items():
        if isinstance(value, str | os.PathLike):
            files.append(str(value))
            files._add_name(name)
        else:
            files.extend(map(str, value))
            files._set_name(name, len(files) - len(value), len(files))
    return files


def _plain(value):
    """What JSON does not know: paths, and views of dicts."""
    return os.fspath(value) if isinstance(value, os.PathLike) else list(value)

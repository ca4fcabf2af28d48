"""Run the script of a rule as Snakemake does, without Snakemake's workflow."""

import contextlib
import json
import os
import re
import runpy
from pathlib import Path
from unittest import mock

from snakemake.iocontainers import InputFiles, Log, OutputFiles, Params, ResourceList, Snakemake, Wildcards

from entropy_valley.experiment.runs import job

SCRIPTS = Path(__file__).parents[1] / "workflow" / "scripts"


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
    """Run the script of the rule, or workflow/scripts/NAME.py, in this process; errors are raised.

    ``spec`` is a value, or its JSON. ``input`` and ``output`` are a path, a list, or a dict of paths and lists.
    """
    execution = json.loads(json.dumps(execution, default=_plain))
    snakemake = snakemake_object(rule or name, spec, input, output, execution, threads, wildcards=wildcards)
    with mock.patch.object(job, "job_of", lambda given, **_: contextlib.nullcontext(job.ScriptJob(given))):
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

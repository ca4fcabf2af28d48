"""What a run of the workflow prints: ``snakemake --logger entropy-valley``, switched on by the profiles.

A dry run is a screenful: for each rule its jobs, cells and hours, and why they run. A run has a line for each job that
begins, is done or has failed. With ``-p``, ``--verbose`` or ``--quiet`` Snakemake prints its own text.
"""

import argparse
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley.errors import InputError, listed, nearest
from entropy_valley.experiment.runs import ERROR, JOBS, cause_of, name_of

NOISE = (  # how lines of Snakemake begin that say nothing about results
    "Building DAG of jobs",
    "Config file ",
    "Using shell",
    "Group jobs: inactive",
    "Conda environments: ignored",
    "Singularity containers: ignored",
    "Select jobs",
    "Touching output",
    "Assuming unrestricted shared filesystem",
    "Reasons:",
    "Some jobs were triggered by provenance",
    "Rules with provenance triggered jobs",
    "This was a dry-run",
    "Shutting down, this might take some time",  # after a failed job, which is told
    "Exiting because a job execution failed",
    "No SLURM account given",  # the plugin for SLURM; the profile may have one
    "No account was given",
    "Guessed SLURM account",
    "Unable to guess SLURM account",
)
CALL = "sbatch call:"  # after it, in an error of the plugin: a command of 3,000 characters, which Snakemake's log has
DRY = "A dry run: nothing was run. For the files and the command of each job, add -p: snakemake -n -p"
INCOMPLETE = "At least one job did not complete successfully"  # Snakemake's last words, also after Ctrl-C
STOPPING = "Terminating processes on user request"  # Snakemake's words after Ctrl-C
STOPPED = "Stopped. Nothing that is finished is lost: run the same command again, and it goes on from here."
RULES = ("all", "check", "pages", "live", "document", "pdf", "packs")  # that may be targets
TARGETS = f"Targets are files, of which docs/results.md has the names, and the rules {', '.join(RULES)}."
UNREAD = ("Config file", "load_configfile")  # Snakemake's words for one that it cannot read; they do not name it
ASKED = re.compile(r"\nError:\n  InputError: (.+)")  # in Snakemake's words, an error of ours in a function of a rule
LINES = 20  # most lines of a failed job's log


class LogHandler(LogHandlerBase):
    """Snakemake's interface. An error in here never ends a run: Snakemake's own words are printed instead."""

    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        settings = self.common_settings
        chosen = settings.printshellcmds or settings.verbose or settings.debug_dag or settings.quiet
        self._screen = None if chosen else Screen(settings.show_failed_logs)
        if settings.dryrun:
            out = os.environ.get(JOBS)
            self._screen = DryRun(out) if out or not chosen else None

    def emit(self, record: logging.LogRecord) -> None:
        if self._screen is not None:
            try:
                self._print(self._screen.lines(record))
            except Exception:
                self._print([self.format(record)])

    def close(self) -> None:
        screen, self._screen = self._screen, None
        super().close()
        if isinstance(screen, DryRun):
            self._print(screen.end())

    def _print(self, lines: Iterable[str]) -> None:
        """Write lines where Snakemake would; nobody may be listening any more."""
        stream = sys.stdout if self.common_settings.dryrun else sys.stderr
        for line in lines:
            try:
                print(line, file=stream, flush=True)
            except (OSError, ValueError):
                return

    @property
    def writes_to_stream(self) -> bool:
        return self._screen is not None


class Screen:
    """Prints what a run does. The plugin for SLURM says itself which jobs it submits. ``show_logs``: with the end of a
    failed job's log."""

    def __init__(self, show_logs: bool = False) -> None:
        self._show_logs, self._stopped = show_logs, False
        self._begun = time.time() - 1  # the clock of files is a little slow
        self._names: dict[int, str] = {}  # of jobs by id; the plugin for SLURM does not tell them
        self._done: list[str] = []  # since the last progress
        self._failed: dict[int, str] = {}  # name, logs and cause by id

    def lines(self, record: logging.LogRecord) -> Iterator[str]:
        """What is printed because of a record."""
        text = record.getMessage()
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:  # how many jobs each rule has
                yield text
            case LogEvent.JOB_INFO:
                self._names[record.jobid] = name_of(record.rule_name, record.wildcards)
                yield f"{_clock()} begins: {self._names[record.jobid]}"
            case LogEvent.JOB_FINISHED:
                self._failed.pop(record.job_id, None)  # a second attempt has succeeded
                self._done.append(self._names.get(record.job_id, text.removeprefix("Finished ")))
            case LogEvent.JOB_ERROR:
                yield from self._failure(record)
            case LogEvent.PROGRESS:
                yield f"{_clock()} done: {', '.join(self._done)} ({record.done} of {record.total} jobs)"
                self._done.clear()
            case LogEvent.ERROR:
                yield from self.error(record.exception, text)
            case None:
                self._stopped |= text.startswith(STOPPING)
                if not text.startswith(NOISE):
                    yield text

    def _failure(self, record: logging.LogRecord) -> Iterator[str]:
        """A failed job, and its log, unless that is of an earlier run; those that Ctrl-C has ended did not fail."""
        if self._stopped:
            return
        logs = [log for log in map(Path, record.log) if not log.is_file() or log.stat().st_mtime >= self._begun]
        name = self._names.get(record.jobid, record.rule_name)
        paths, causes = [str(log) for log in logs], [cause_of(log).removeprefix(ERROR) for log in logs]
        self._failed[record.jobid] = ": ".join(filter(None, [name, *paths, *causes]))
        yield f"{_clock()} failed: {name}; its log: {listed(paths) or 'none'}"
        if record.rule_msg:  # of what ran it, such as SLURM
            yield f"    {' '.join(record.rule_msg.partition(CALL)[0].split())}"
        for log in filter(Path.is_file, logs if self._show_logs else ()):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            yield from [f"    {line.rstrip()}" for line in lines if line.strip()][-LINES:]

    def error(self, exception: str, text: str) -> Iterator[str]:
        """An error that ends the run: why jobs failed, a line for each; ours without the place in the code; that of a
        wrong target with what is right."""
        target = re.search(r"No rule to produce (.+?)(?= \(if you use|\n|$)", text)
        ours = ASKED.search(text)
        if INCOMPLETE in text:
            yield from [f"Failed: {failure}" for failure in self._failed.values()] or [STOPPED]
        elif exception == "RuleException" and "CalledProcessError" in text:
            return  # of a command that failed, which Snakemake tells once more as the job's error
        elif ours:
            yield f"{ERROR}{ours[1]}"
        elif exception == "InputError":
            _, first, *others = text.splitlines()
            yield f"{ERROR}{first}"
            yield from (line for line in others if not line.startswith('  File "'))
        elif target:
            yield f"{ERROR}no rule makes {target[1]}. {_near(target[1])}"
        elif any(words in text for words in UNREAD):
            yield from _unread() or [text]
        else:
            yield text


class DryRun(Screen):
    """Collects the jobs, and prints them at the end; or writes them into the file ``out``, for what else asks Snakemake
    for them."""

    def __init__(self, out: str | None) -> None:
        super().__init__()
        self._jobs: list[logging.LogRecord] = []
        self._out, self._stats = out, ""

    def lines(self, record: logging.LogRecord) -> Iterator[str]:
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:
                self._stats = record.getMessage()
            case LogEvent.JOB_INFO:
                self._jobs += [record] if record.output else []  # a target has none
            case _:
                yield from super().lines(record)

    def end(self) -> Iterator[str]:
        """What is printed after the last record."""
        if self._out:
            from entropy_valley.experiment.runs import jobs

            jobs.write(Path(self._out), self._jobs)
        elif self._jobs:
            try:
                yield from _planned(self._jobs)
            except Exception as error:
                yield f"No hours and cells: {type(error).__name__}: {error}"
                yield self._stats
            yield from ("", DRY)


def _planned(records: list[logging.LogRecord]) -> Iterator[str]:
    """The jobs of a dry run with their hours and cells, as the config of this process has them."""
    from entropy_valley.experiment.runs import jobs, plan, snapshot
    from entropy_valley.experiment.runs.audit import Audit

    running = snapshot.running
    assert running, "the Snakefile is not that of this plugin"
    planned = [jobs.Job(running.experiment, **jobs.told_by(running, record)) for record in records]
    audit = Audit(jobs.Jobs(running.experiment, planned))
    left = audit.jobs.all
    yield from plan.report(plan.Plan(audit, left), running.files, {job: audit.why(job) for job in left})


def _near(target: str) -> str:
    """What a mistyped target may mean: a rule, or a file by its path or its name."""
    from entropy_valley.experiment.runs import snapshot

    running = snapshot.running
    assert running
    meant = {Path(path).name: path for path in running.targets}
    meant |= {name: name for name in (*running.targets, *RULES)}
    near = dict.fromkeys(meant[name] for name in nearest(target, meant))
    return f"Did you mean {' or '.join(near)}?" if near else TARGETS


def _unread() -> list[str]:
    """What is wrong with each config file of this process's command line."""
    from entropy_valley.experiment.config.load import read_yaml

    parser, errors = argparse.ArgumentParser(add_help=False, allow_abbrev=False), []
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    for path in parser.parse_known_args()[0].configfile:
        try:
            read_yaml(path)
        except InputError as error:
            errors.append(f"{ERROR}{error}")
    return errors


def _clock() -> str:
    return time.strftime("[%H:%M:%S]")

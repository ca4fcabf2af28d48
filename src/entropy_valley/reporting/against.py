"""What changes from one config to another: its keys, and the jobs that Snakemake would add, drop or run again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from entropy_valley.differences import ABSENT, Difference, between, differences
from entropy_valley.experiment import Experiment, plan
from entropy_valley.experiment.chain import Chain
from entropy_valley.experiment.matrix import all_cells
from entropy_valley.experiment.result import RULES, Result, collect
from entropy_valley.reporting import reports
from entropy_valley.reporting.changes import LONGEST, counted, reasons, shown
from entropy_valley.reporting.report import OfTables

KEYS, REASONS = 30, 3  # most keys that are listed, and params of a job
Key = tuple[str, ...]
ORDER = [*RULES, "table", "comparison", "figure"]


@dataclass(frozen=True)
class Comparison:
    """Jobs by their rule and wildcards: those that only one of two configs has, and those of both that run again, with
    the params that differ (none where only their input does)."""

    before: Mapping[Key, Result]
    after: Mapping[Key, Result]
    again: Mapping[Key, tuple[Difference, ...]]

    @property
    def added(self) -> list[Key]:
        return [key for key in self.after if key not in self.before]

    @property
    def gone(self) -> list[Key]:
        return [key for key in self.before if key not in self.after]


def compare(before: Experiment, after: Experiment) -> Comparison:
    """The jobs of both configs, with all that their tables and figures need."""
    old, new = jobs(before), jobs(after)
    again: dict[Key, tuple[Difference, ...]] = {}
    for key, job in new.items():  # what a job needs comes before it
        if key in old:
            changed = tuple(one for one in differences(old[key].spec, job.spec) if not _follows(one))
            needs = [{need.key for need in one.needs} for one in (old[key], job)]
            if changed or needs[0] != needs[1] or any(need in again or need not in old for need in needs[1]):
                again[key] = changed
    return Comparison(old, new, again)


def _follows(change: Difference) -> bool:
    """Whether it follows from other cells: a table has the labels, ratios and files of those that it shows."""
    of_cells = change.key.startswith(("labels.", "ratios.", "testsets.", "tokens.", "overlaps."))
    return of_cells and ABSENT in (change.before, change.after)


def jobs(experiment: Experiment) -> dict[Key, Result]:
    """Every job of a config, those that others need first."""
    chain, made = Chain(experiment), {}
    for cell in all_cells(experiment):
        collect(chain.scores(cell), made)
    configured, tables = reports.ready(experiment, reports.configured(experiment)), {}
    for path, report in sorted(configured.items(), key=lambda item: isinstance(item[1], OfTables)):
        needs = [chain.at(one) or tables.get(one) for one in report.inputs(experiment)]
        job = _report(experiment, path, report, tuple(dict.fromkeys(filter(None, needs))))
        tables[f"{experiment.results}/{path}.csv"] = job
        collect(job, made)
    return {job.key: job for job in made}


def _report(experiment: Experiment, path: str, report: reports.Report, needs: tuple[Result, ...]) -> Result:
    """The job of a table or figure. Where files are is no param of it here: the results may be in another folder."""
    folder, name = path.split("/")
    rule = "figure" if folder == "figures" else "table" if "tex" in report.endings else "comparison"
    root = experiment.results
    spec = json.loads(report.params(experiment).replace(f'"{root}/', '"'))
    if "cells" in spec:
        spec["cells"] = ["/".join(map(str, cell.key().values())) for cell in report.cells(experiment)]
    files = tuple(f"{name}.{ending}" for ending in report.endings)
    log = f"{root}/logs/{rule}/{name}.log"
    return Result(rule, {rule: name}, f"{root}/{folder}", files, log, spec, needs)


def lines(before: Experiment, after: Experiment, keys: Iterable[Difference]) -> Iterator[str]:
    """The comparison of two configs in print; ``keys`` are those that differ in their files."""
    found = list(keys)
    yield f"{counted(len(found), 'key')} of the config {'differs' if len(found) == 1 else 'differ'}" + ":" * bool(found)
    yield from (f"  {one.key}: {between(shown(one.before), shown(one.after), LONGEST)}" for one in found[:KEYS])
    if len(found) > KEYS:
        yield f"  … and {len(found) - KEYS} more"
    if before.results != after.results:
        yield f"The results are in another folder: {after.results}. Jobs are compared as if it were the same."
    compared = compare(before, after)
    yield ""
    if planned := list(_planned(after, compared)):
        yield "Where all jobs of the first config are done, the second one runs"
        yield plan.summary(planned)
    if gone := _sorted(compared.before[key] for key in compared.gone):
        yield f"It does not ask for the results of {counted(len(gone), 'job')} any more; their files stay:"
        for rule in dict.fromkeys(job.rule for job in gone):
            of_rule = [job.wildcards for job in gone if job.rule == rule]
            yield f"  {rule} ({len(of_rule)}): {' '.join(plan.lines(of_rule, 100)) or 'one for all'}"
        yield ""
    yield _cells(before, after, compared)


def _planned(after: Experiment, compared: Comparison) -> Iterator[plan.Job]:
    """The jobs that run, with the reason as a dry run has it."""
    for job in _sorted(compared.after[key] for key in [*compared.again, *compared.added]):
        news = [need.rule for need in job.needs if need.key in compared.again or need.key not in compared.before]
        if job.key not in compared.before:
            why = "new"
        else:
            why = reasons(after, job.rule, job.wildcards, compared.again[job.key], REASONS)
            why = why or ("" if news else "other input files")
        yield plan.Job(job.rule, job.wildcards, why, tuple(dict.fromkeys(news)))


def _sorted(jobs: Iterable[Result]) -> list[Result]:
    return sorted(jobs, key=lambda job: ORDER.index(job.rule))


def _cells(before: Experiment, after: Experiment, compared: Comparison) -> str:
    """What becomes of the cells: the last line."""
    old, new = (dict.fromkeys(all_cells(one)) for one in (before, after))
    chain = Chain(after)
    again = sum(chain.scores(cell).key in compared.again for cell in new if cell in old)
    same = sum(cell in old for cell in new) - again
    added, gone = (sum(cell not in other for cell in one) for one, other in ((new, old), (old, new)))
    return f"{len(old)} cells before, {len(new)} after: {same} as before, {again} again, {added} added, {gone} gone"

"""Ends a run before anything is submitted if the SLURM site would refuse its jobs, or leave them waiting for ever."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Sequence

from entropy_valley.errors import InputError
from entropy_valley.experiment.slurm.requests import PROFILE, Request, problems
from entropy_valley.experiment.slurm.site import SECONDS, Site

# What sbatch says of a request that it would take at another time.
FOR_NOW = re.compile(
    r"busy|down, drained or reserved|inactive or drain|temporarily|contact slurm controller|timed out|try again", re.I
)


def check(site: Site, requests: Iterable[Request], refused: Callable[[Request], str | None]) -> None:
    """Raise InputError that names every problem of every request.

    ``refused`` tells why sbatch itself would refuse a request, None if it would not; it is asked only about requests
    in which nothing else is found.
    """
    found: dict[str, InputError] = {}
    faulty = set()
    for request in requests:
        if request.attempt > 1 and request.rule in faulty:
            continue
        of_request = list(problems(site, request))
        if not of_request and (said := refused(request)):
            remedy = f"Correct what it requests in {PROFILE}, or ask your site's support."
            of_request = [InputError(request.place, f"requests {request.wanted}, and sbatch says: {said}", remedy)]
        if of_request:
            faulty.add(request.rule)
        found.update((str(error), error) for error in of_request)
    errors = list(found.values())
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problem = f"{len(errors)} problems, and nothing was submitted"
        raise InputError("SLURM", problem, "".join(f"\n- {error}" for error in errors))


def check_arrays(rules: Iterable[str], requests: Iterable[Request]) -> None:
    """Raise InputError for a rule whose jobs request different things: in an array, all get what the first requests."""
    asked = [request for request in requests if request.attempt == 1 and not request.group]
    for rule in [request.rule for request in asked] if "all" in rules else rules:
        wanted = {f"{one.wanted} in partition {one.partition}" for one in asked if one.rule == rule}
        if len(wanted) > 1:
            problem = f"jobs of {rule} request different things ({'; '.join(sorted(wanted))})"
            raise InputError("slurm-array-jobs", problem, "Leave that rule out: all tasks of an array get the same.")


def refusal(command: Sequence[str]) -> str | None:
    """Why sbatch would refuse a job for good, by its own ``--test-only``; None if it would not or does not answer."""
    try:
        done = subprocess.run(
            [*command, "--test-only", "--wrap", "true"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = " ".join(line.removeprefix("sbatch: ").strip() for line in done.stderr.splitlines())
    return said if done.returncode and not FOR_NOW.search(said) else None


def status_command(site: Site, chosen: str | None, first_poll: int) -> str | None:
    """With which command Snakemake watches its jobs, ``chosen`` unless it does not answer; ``first_poll`` in seconds.

    Raises InputError where neither works: without slurmdbd ``sacct`` tells nothing, and squeue forgets a finished job
    after MinJobAge, which must be longer than Snakemake waits between two looks.
    """
    if site.finished_jobs:
        return chosen
    age = re.match(r"\d+", (site.settings or {}).get("MinJobAge", "300 sec"))
    longest = max(3 * first_poll, 180)  # as the plugin has it
    if age and int(age[0]) < longest:
        problem = f"does not answer, and squeue forgets finished jobs after {age[0]} s (MinJobAge)"
        remedy = f"Ask your site for slurmdbd or a MinJobAge of at least {longest}: else Snakemake waits for ever."
        raise InputError("sacct", problem, remedy)
    return "squeue"

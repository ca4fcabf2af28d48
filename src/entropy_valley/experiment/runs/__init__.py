"""The jobs of a config: what is there of them, what they will take, and what a cluster grants them."""

from collections.abc import Mapping
from pathlib import Path

from entropy_valley.texts import shown

JOBS = "ENTROPY_VALLEY_JOBS"  # the environment variable with the file that a dry run writes its jobs into
ERROR = "error: "  # how the last line of a job's log begins if our code has ended it
WRAPPERS = ("srun: error: ", "slurmstepd: error: ")  # what SLURM says of a process that has ended
# Snakemake's reasons for a job, and in fewer words.
WORDS = {
    "Forced execution": "interrupted or forced",  # Snakemake forces what was interrupted
    "Incomplete output files": "its last attempt was killed",
    "Set of input files has changed": "other input files",
    "Code has changed": "code changed",
    "Params have changed": "params changed",
    "Software environment definition has changed": "environment changed",
    "Updated input files": "newer input",
    "Missing output files": "new",
}
FOLLOWS = "input made by other jobs"
PREFIXES = {"seed": "seed", "steps": "T"}  # of wildcards, in the names of jobs


def name_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """The name of a job, as its log and benchmark have it: ``translate/en-zh.llada-8b.seed1.matrix``."""
    values = (f"{PREFIXES.get(name, '')}{value}" for name, value in wildcards.items())
    return "/".join(filter(None, [rule, ".".join(values)]))


def cause_of(log: Path) -> str:
    """Why a job failed, by its log: the first error there, else the last words of a traceback, else what SLURM says; ""
    where it has none."""
    if not log.is_file():
        return ""
    lines = [shown(line) for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    if errors := [line for line in lines if line.startswith(ERROR)]:
        return errors[0].strip()
    wrappers = [line for line in lines if line.startswith(WRAPPERS)]
    if any(line.startswith("Traceback ") for line in lines):
        with_words = (line for line in reversed(lines) if any(map(str.isalnum, line)))  # not a frame
        return next((line.strip() for line in with_words if line not in wrappers), "")
    return wrappers[0].strip() if wrappers else ""


def brief(reason: str) -> list[str]:
    """Snakemake's reason for a job in a few words."""
    return [word for begin, word in WORDS.items() if f"; {begin}" in f"; {reason}"] or [FOLLOWS]


def duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{seconds:.0f} s"

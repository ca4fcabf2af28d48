"""The jobs of a config: what is there of them, what they will take, and what a cluster grants them."""

from collections.abc import Mapping

JOBS = "ENTROPY_VALLEY_JOBS"  # the environment variable with the file that a dry run writes its jobs into
PREFIXES = {"seed": "seed", "steps": "T"}  # of wildcards, in the names of jobs


def name_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """The name of a job, as its log and benchmark have it: ``translate/en-zh.llada-8b.seed1.matrix``."""
    values = (f"{PREFIXES.get(name, '')}{value}" for name, value in wildcards.items())
    return "/".join(filter(None, [rule, ".".join(values)]))

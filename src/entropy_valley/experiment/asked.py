"""What the targets of a Snakemake run ask of the models: which results of each training run, and which scores.

One job loads a run's model and does the work of all jobs that read it (rule ``inference``). It must know which of them
are asked for, so that asking for one cell computes that cell alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from entropy_valley.experiment.chain import DIAGNOSTICS, FITTED, Chain
from entropy_valley.experiment.params.methods import canvas_needs_model, sees_reference
from entropy_valley.experiment.result import Result, collect

CANVASES = ("canvas", "reassigned_canvas")


def asked_files(
    targets: Iterable[str], everything: Callable[[], Sequence[str]], reads: Callable[[str], Sequence[str]]
) -> list[str]:
    """The files that targets stand for: a report's file for what the report ``reads``, a rule's name (or no target) for
    ``everything``."""
    files: dict[str, None] = {}
    for target in list(targets) or ["all"]:
        path = os.path.normpath(target)
        files |= dict.fromkeys((reads(path) or [path]) if "/" in path else everything())
    return list(files)


def behind(results: Iterable[Result | None]) -> list[Result]:
    """Results and all that they are made from, each once, after what it is made from itself."""
    found: dict[Result, None] = {}
    for result in filter(None, results):
        collect(result, found)
    return list(found)


def reads_model(chain: Chain, result: Result) -> bool:
    """Whether the job of a result reads its run's model, and has others that do its work together with its own."""
    if result.rule == "canvas":
        return canvas_needs_model(chain.experiment, result.wildcards["method"])
    return result.rule in (*FITTED, *DIAGNOSTICS, "decode")


def measured_by_references(chain: Chain, results: Iterable[Result]) -> dict[tuple[str, ...], list[str]]:
    """The test sets for which canvases of their references' lengths are asked, by direction, backbone and seed."""
    found: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        of = result.wildcards
        if result.rule == "canvas" and sees_reference(chain.experiment, of["method"]):
            path = next(_needs(result, "testset", "dev_as_testset")).paths[0]
            found.setdefault((of["direction"], of["backbone"], of["seed"]), []).append(path)
    return found


def request(result: Result) -> dict[str, Any]:
    """What ``inference.py`` is asked for: the rule and params of a result, and the files of sentences that it reads."""
    sentences, *others = next(_needs(result, "corpus", "testset", "dev_as_testset")).paths
    asked = {"rule": result.rule, "spec": result.spec, "testset": sentences}
    if result.rule == "length_head":
        asked["dev"] = others[0]
    if result.rule == "decode":
        asked["choose"] = _choice(next(_needs(result, *CANVASES)))
    return asked


def hypotheses(score: Result) -> str:
    """The file that scores are of."""
    return next(_needs(score, "decode", "generate")).paths[0]


def _choice(canvases: Result) -> dict[str, Any]:
    """How canvases are chosen: by a method itself, or dealt from those of another one."""
    of = next(_needs(canvases, *CANVASES), None)
    return {"rule": canvases.rule, "spec": canvases.spec, **({"of": _choice(of)} if of else {})}


def _needs(result: Result, *rules: str) -> Iterator[Result]:
    return (need for need in result.needs if need.rule in rules)

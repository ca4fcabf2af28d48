"""Does a canvas have the same bits alone and in company? Only the device can tell, by products of real sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from entropy_valley.checking.line import Check, CheckError, SkippedError
from entropy_valley.checking.speed import random_model
from entropy_valley.checking.subject import Subject
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.job import TOKENS
from entropy_valley.decoding.requests import Canvas, Queue
from entropy_valley.model.families import find_family

_LAYERS = 2  # all of a backbone's layers have the same shapes
_CANVASES, _ALONE = 60, 6


def checks(of: Subject) -> Iterator[tuple[str, Check]]:
    """A line for each backbone that decodes canvases."""
    for name, backbone in of.backbones.items():
        if not find_family(backbone["family"]).causal:
            yield f"company {name}", lambda backbone=backbone: company(backbone, of)


def company(backbone: dict[str, Any], of: Subject) -> str:
    """Readings of a canvas in padded passes, by a model with the backbone's widths, some layers and random weights.

    Raises CheckError where they depend on the company and the jobs pad their passes.
    """
    model = random_model(backbone, of, num_hidden_layers=_LAYERS)
    draw, canvases = random.Random(1), []
    for _ in range(_CANVASES):
        prompt = [draw.randrange(model.eos_id) for _ in range(draw.randint(10, 60))]
        canvases.append(Canvas(prompt, draw.randint(5, 60)))
    padded, plain = (_same(model, canvases, fill, of.compile_layers) for fill in (TOKENS[of.device], None))
    said = (
        f"{padded} of {_ALONE} canvases have the same bits alone and among {_CANVASES} in padded passes; "
        f"{plain} in passes that are not padded"
    )
    if padded < _ALONE:
        problem = f"{said}: here, results may change with the sentences of a job (docs/performance.md)"
        if of.fill:
            raise CheckError(f"{problem}. To go on without that promise, set `decoding.batch_invariant: false`")
        raise SkippedError(problem)
    return said


def _same(model: Any, canvases: list[Canvas], fill: int | None, compile_layers: bool) -> int:
    """How many of the first canvases are read alone as they are in company."""
    engine = Engine(model, fill=fill, compile_layers=compile_layers)
    together = dict(engine.run(Queue(enumerate(canvases))))
    alone = (dict(engine.run(Queue([(place, canvases[place])]))) for place in range(_ALONE))
    return sum(read[place] == together[place] for place, read in enumerate(alone))

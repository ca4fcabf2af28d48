"""What a translation costs: as the paper counts it, and as the engine runs it for the sentence by itself."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from entropy_valley.engine.order import needs_sourceless

if TYPE_CHECKING:
    from entropy_valley.decoding.denoising import Denoising
    from entropy_valley.decoding.requests import DecodedVariableLength
    from entropy_valley.engine.queue import Decoded

COUNTS = ("calls", "slots", "passes", "run_tokens", "head_rows")


def sentence_costs(
    canvas: Mapping[str, Any], prompt: int, sourceless: int, decoded: Mapping[int, Decoded], denoising: Denoising
) -> dict[str, int]:
    """The counts of a canvas row and all that is decoded for it, by the number of masks at the start.

    ``calls`` and ``slots`` are the method's as the paper counts them: probes and T steps, each step over all slots, and
    again over those of the source-free pass where the order looks at it; two passes for a SIG against a distractor. A
    variable-length decoder has the passes that it took, each over the slots of its own canvas. ``passes``,
    ``run_tokens`` and ``head_rows`` are what the engine needs for the sentence by itself: no empty steps, the probe
    reused, nothing once all before the EOS is settled. A source-free pass is a pass, and so is a distractor's.
    A finished text that is scored takes a pass more.
    ``prompt`` and ``sourceless`` are the tokens of the two prompts, the latter without the source or a distractor's.
    """
    calls, slots = canvas["calls"], canvas["slots"]
    costs = [(calls, slots, calls, calls * prompt + slots, slots)]
    for length, one in decoded.items():
        # Lengths may have been compared without a probe: a canvas row then has no slots.
        probed = bool(slots and canvas["scores"]) and length in canvas["candidates"]
        if denoising.variable_length:
            costs.append(_variable_length(length, prompt, one, probed))
        else:
            costs.append(_fixed_length(length, prompt, sourceless, one, denoising, probed))
        if canvas.get("rescoring") and len(decoded) > 1:
            costs.append((1, len(one.tokens), 1, prompt + len(one.tokens), len(one.tokens)))
    return dict(zip(COUNTS, map(sum, zip(*costs, strict=True)), strict=True))


def _fixed_length(
    length: int, prompt: int, sourceless: int, decoded: Decoded, denoising: Denoising, probed: bool
) -> tuple[int, ...]:
    """After the probes: the all-mask pass is not run again where that length was probed and its reading is all that
    the order looks at; the source-free passes of the steps that look at more are run."""
    passes = decoded.passes
    masked, steps = denoising.masked(length, passes), len(denoising.counts(length))
    compared = [needs_sourceless(denoising.order, step, steps) for step in range(passes)]
    reused, once = int(probed and not compared[0]), denoising.looks_at_distractor
    others = sum(compared) + once
    return (
        denoising.calls,
        denoising.calls * length,
        passes - reused + others,
        (passes - reused) * (prompt + length) + others * (sourceless + length),
        sum(masked) - reused * length + sum(itertools.compress(masked, compared)) + once * length,
    )


def _variable_length(length: int, prompt: int, decoded: DecodedVariableLength, probed: bool) -> tuple[int, ...]:
    passes, slots = decoded.passes, decoded.slots
    run = passes - probed
    return passes, slots, run, run * prompt + slots - probed * length, decoded.rows - probed * length

"""What a translation costs, as the paper counts it, and as the engine runs it for the sentence by itself."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from entropy_valley.decoding.canvas import CachePolicy, Decoded
from entropy_valley.decoding.orders import needs_sourceless
from entropy_valley.decoding.requests import DecodedVariableLength, Denoising

COUNTS = ("calls", "slots", "passes", "run_tokens", "head_rows")


@dataclass(frozen=True)
class PromptCosts:
    """The tokens of the two prompts of a sentence, ``other`` being that without the source or a distractor's, and which
    passes compute them.

    ``once``: the first pass over a prompt computes it for all. ``cache``: of prompts. ``shifted``: slot 0 is read
    from the prompt's last row, which every pass computes.
    """

    source: int
    other: int
    shifted: bool = False
    once: bool = False
    cache: CachePolicy | None = None

    def rows(self, prompt: int, passes: int, cached: int = 0) -> int:
        """Of a prompt of so many tokens, the rows that ``passes`` compute; ``cached`` take them from another pass."""
        cached = passes - 1 if self.once and passes else cached
        return passes * prompt - cached * (prompt - int(self.shifted))


def sentence_costs(
    canvas: Mapping[str, Any], prompts: PromptCosts, decoded: Mapping[int, Decoded], denoising: Denoising
) -> dict[str, int]:
    """The counts of a canvas row and all that is decoded for it, by the number of masks at the start.

    ``calls`` and ``slots`` are the method's as the paper counts them: probes and T steps, each step over all slots, and
    again over those of the source-free pass where the order looks at it; two passes for a SIG against a distractor. A
    variable-length decoder has the passes that it took, each over the slots of its own canvas. ``passes``,
    ``run_tokens`` and ``head_rows`` are what the engine needs for the sentence by itself: no empty steps, the probe
    reused, nothing once all before the EOS is settled, and of the prompt what ``prompts`` says. A source-free pass is a
    pass, and so is a distractor's. A finished text that is scored takes a pass more, and so does a length head.
    """
    calls, slots = canvas["calls"], canvas["slots"]
    apart = canvas.get("apart", 0 if slots else calls)  # a length head's pass has no slots
    # Of the method: calls and slots. Of the engine: passes over the prompt, and over the ``other`` one, each with how
    # many of these are ``cached``; slots and rows of the LM head in all of them; passes that stand ``apart`` and
    # compute their prompt.
    total = Counter(calls=calls, slots=slots, passes=calls - apart, apart=apart, run_slots=slots, head_rows=slots)
    total["cached"] = canvas.get("cached", 0)
    for length, result in decoded.items():
        # Lengths may have been compared without a probe: a canvas row then has no slots.
        probed = bool(slots and canvas["scores"]) and length in canvas["candidates"]
        if isinstance(result, DecodedVariableLength):
            decoder, passes = denoising.variable_length, result.passes
            reused = int(probed and not prompts.cache and decoder is not None and decoder.starts_masked)
            total.update(calls=passes, slots=result.slots, passes=passes - reused)
            total.update(run_slots=result.slots - reused * length, head_rows=result.rows - reused * length)
        else:
            total.update(_fixed_length(length, result, denoising, probed, prompts.cache))
        if canvas.get("rescoring") and len(decoded) > 1:
            size = len(result.tokens)
            total.update(calls=1, slots=size, run_slots=size, head_rows=size, apart=1)
    rows = prompts.rows(prompts.source, total["passes"], total["cached"])
    rows += prompts.rows(prompts.other, total["other"], total["other_cached"])
    return {
        "calls": total["calls"],
        "slots": total["slots"],
        "passes": total["passes"] + total["other"] + total["apart"],
        "run_tokens": rows + total["apart"] * prompts.source + total["run_slots"],
        "head_rows": total["head_rows"],
    }


def _fixed_length(
    length: int, decoded: Decoded, denoising: Denoising, probed: bool, cache: CachePolicy | None
) -> dict[str, int]:
    """After the probes: the all-mask pass is not run again where that length was probed and its reading is all that
    the order looks at; the source-free passes of the steps that look at more are run. With a prompt cache all are
    run, and only some compute the prompt. A SIG against a distractor is of exact readings: there that behind the
    source takes a pass of its own too."""
    passes = decoded.passes
    masked, steps = denoising.masked(length, passes), len(denoising.counts(length))
    compared = [needs_sourceless(denoising.order, step, steps) for step in range(passes)]
    reused, distractor = int(probed and not compared[0] and not cache), int(denoising.looks_at_distractor)
    exact = distractor if denoising.reuse(length, cache).refresh else 0
    others, looking = sum(compared) + distractor, [step for step, looks in enumerate(compared) if looks]
    own = passes - reused + exact
    return {
        "calls": denoising.calls,
        "slots": denoising.calls * length,
        "passes": own,
        "cached": cache.saved(range(passes)) if cache else 0,
        "other": others,
        "other_cached": cache.saved(looking) if cache else 0,
        "run_slots": (own + others) * length,
        "head_rows": sum(masked) + sum(itertools.compress(masked, compared)) + (exact + distractor - reused) * length,
    }

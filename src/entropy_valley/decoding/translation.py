"""From a test set and its canvases to hypotheses, decoding only what the store has not."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.canvas.reading import Reading
from entropy_valley.decoding.growing import FILLINGS
from entropy_valley.decoding.growing.job import fill_growing, growing_counts
from entropy_valley.decoding.keys import decode_key, probe_key
from entropy_valley.decoding.orders import make_order
from entropy_valley.decoding.orders.base import needs_sourceless, sourceless_steps
from entropy_valley.decoding.schedule import reveal_counts
from entropy_valley.decoding.tasks import Canvas, Queue
from entropy_valley.errors import InputError
from entropy_valley.revisions import DECODING

if TYPE_CHECKING:
    from entropy_valley.canvas.job import Job
    from entropy_valley.decoding.growing.slots import Filling
    from entropy_valley.decoding.orders.base import Order

TOTALS = ("calls", "slots", "passes", "run_tokens", "head_rows")


@dataclass(frozen=True)
class Denoising:
    """How canvases are filled: a reveal order and its settings, the step budget T and the schedule rule.

    ``order`` may name a filling that changes the canvas; T and schedule then play no part.
    """

    order: str
    steps: int
    schedule: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def reveal_order(self) -> Order:
        return make_order(self.order, self.settings)

    @functools.cached_property
    def filling(self) -> Filling | None:
        """What changes the canvas while it denoises it; None: a reveal order, which does not."""
        return make_order(self.order, self.settings) if self.order in FILLINGS else None

    def counts(self, length: int) -> list[int]:
        """Slots revealed at each step that reveals any; the others change nothing and are not run."""
        return [count for count in reveal_counts(length, self.steps, self.schedule) if count]

    def masked(self, length: int, passes: int) -> list[int]:
        """The slots that are still masked in each of the first ``passes`` passes over a canvas."""
        revealed = itertools.accumulate(self.counts(length)[: passes - 1], initial=0)
        return [length - before for before in revealed]

    def canvas(
        self, prompt: Sequence[int], sourceless: Sequence[int] | None, length: int, start: Reading | None = None
    ) -> Canvas:
        """What the engine is to fill; with the prompt without source where some step of the order looks at it."""
        counts = self.counts(length)
        twin = sourceless if sourceless_steps(self.reveal_order, len(counts), len(counts)) else None
        return Canvas(prompt, length, counts, start, twin)

    @property
    def calls(self) -> int:
        """Passes of the method as the paper counts them: T, and one more for each step that looks at the SIG."""
        return self.steps + sourceless_steps(self.reveal_order, self.steps, self.steps)

    @property
    def name(self) -> str:
        """Order and settings in one word, for signatures."""
        settings = ",".join(f"{key}={value}" for key, value in sorted(self.settings.items()))
        return f"{self.order}({settings})" if settings else self.order


def read_canvases(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The canvas of each row of the test set; raises InputError if the two do not name the same sentences."""
    canvases = files.read_jsonl(path, ("id", "length", "candidates", "scores", "calls", "slots"))
    for number, (canvas, row) in enumerate(itertools.zip_longest(canvases, rows, fillvalue={}), 1):
        if canvas.get("id") != row.get("id"):
            raise InputError(
                f"{path}:{number}",
                f"canvas of {canvas.get('id')!r}, but the test set has {row.get('id')!r}",
                "Make the canvases from this test set.",
            )
    return canvases


def translate(job: Job, canvases: Sequence[Mapping[str, Any]], denoising: Denoising) -> list[dict[str, Any]]:
    """Hypothesis rows ``{id, hypothesis, length, tokens, logprob, calls, slots, passes, run_tokens, head_rows}``.

    ``tokens`` are the ids before the first EOS or end of a turn; ``logprob`` is the mean over those before the EOS.
    ``calls`` and ``slots`` are the method's as the paper counts them: probes and T steps, each step over all slots,
    and again over those of the source-free twin where the order looks at it.
    ``passes``, ``run_tokens`` and ``head_rows`` are what the engine needs for the sentence by itself: no empty steps,
    the probe reused, nothing once all before the EOS is settled. A twin's pass is a pass.

    Where a filling changes the canvas, ``length`` is the final one, and ``calls`` and ``slots`` are the probes and the
    passes that it really took, each over the slots of its own canvas.
    """
    for place, canvas in enumerate(canvases):
        job.check(place, canvas["length"])
    lengths = [canvas["length"] for canvas in canvases]
    filled = fill_growing(job, lengths, denoising) if denoising.filling else _fill(job, lengths, denoising)
    return [
        _row(job, row["id"], prompt, canvas, value, denoising)
        for row, prompt, canvas, value in zip(job.rows, job.prompts, canvases, filled, strict=True)
    ]


def text_tokens(tokens: Sequence[int], text: int, turn_end: int | None) -> list[int]:
    """The ids of a filled canvas that are its text: of the ``text`` before the first EOS, those before ``turn_end``."""
    return list(itertools.takewhile(lambda token: token != turn_end, tokens[:text]))


def summary(rows: Sequence[Mapping[str, Any]], denoising: Denoising) -> dict[str, int]:
    """Totals over the rows; ``within_steps`` counts the canvases that a larger step budget cannot touch: of a filling
    all."""
    totals = {name: sum(row[name] for row in rows) for name in TOTALS}
    within = sum(bool(denoising.filling) or row["length"] <= denoising.steps for row in rows)
    return {"sentences": len(rows), "within_steps": within, **totals}


def signature(job: Job, denoising: Denoising) -> dict[str, Any]:
    """What the hypotheses depend on beside the data: the decoder, the backbone and the adapter."""
    engine = f"engine r{DECODING}"
    if denoising.filling:
        return job.signature(engine, denoising.name, job.precision)
    return job.signature(engine, denoising.name, f"T{denoising.steps}", job.precision, denoising.schedule)


def _fill(job: Job, lengths: Sequence[int], denoising: Denoising) -> list[dict[str, Any]]:
    checkpoint, numerics = job.card.digest, job.numerics
    canvases = [
        denoising.canvas(prompt, job.sourceless, length) for prompt, length in zip(job.prompts, lengths, strict=True)
    ]
    keys = [decode_key(checkpoint, numerics, canvas, denoising.order, denoising.settings) for canvas in canvases]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        queue = Queue()
        for place in missing:
            canvas = canvases[place]
            start = job.store.get(probe_key(checkpoint, numerics, canvas.prompt, canvas.length))
            queue.put(place, dataclasses.replace(canvas, start=start and Reading.from_json(start)))
        for place, result in job.engine.run(queue, denoising.reveal_order):
            yield place, result.to_json()

    return job.recall("decode", keys, compute)


def _row(
    job: Job,
    sentence: str,
    prompt: Sequence[int],
    canvas: Mapping[str, Any],
    filled: Mapping[str, Any],
    denoising: Denoising,
) -> dict[str, Any]:
    tokens = text_tokens(filled["tokens"], filled["text"], job.card.turn_end)
    if denoising.filling:
        counts = growing_counts(canvas, len(prompt), filled)
    else:
        counts = _counts(canvas, len(prompt), len(job.sourceless), filled["passes"], denoising)
    return {
        "id": sentence,
        "hypothesis": job.card.prompt.text(tokens),
        "length": len(filled["tokens"]),
        "tokens": tokens,
        "logprob": filled["logprob"],
        **counts,
    }


def _counts(
    canvas: Mapping[str, Any], prompt: int, sourceless: int, passes: int, denoising: Denoising
) -> dict[str, int]:
    """What the method needs, and what probes and passes cost: the all-mask pass counted once where its length was among
    the probed and its reading is all that the order looks at, and the twins of the steps that look at more."""
    length, order = canvas["length"], denoising.reveal_order
    masked, steps = denoising.masked(length, passes), len(denoising.counts(length))
    compared = [needs_sourceless(order, step, steps) for step in range(passes)]
    reused = int(bool(canvas["scores"]) and length in canvas["candidates"] and not compared[0])
    twins = sum(compared)
    return {
        "calls": canvas["calls"] + denoising.calls,
        "slots": canvas["slots"] + denoising.calls * length,
        "passes": canvas["calls"] + passes - reused + twins,
        "run_tokens": canvas["calls"] * prompt
        + canvas["slots"]
        + (passes - reused) * (prompt + length)
        + twins * (sourceless + length),
        "head_rows": canvas["slots"] + sum(masked) - reused * length + sum(itertools.compress(masked, compared)),
    }

"""Whatever is decoded together, in whatever order and budget: each canvas comes out as the plain algorithm has it."""

import dataclasses
import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Decoded, ProbeResult, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model.load import load_backbone

PROMPTS = st.lists(st.integers(0, 299), min_size=3, max_size=8).map(tuple)  # special tokens too
STEPS = st.sampled_from([1, 2, 3, 5, 16])
# A canvas to be decoded in T steps, from a known reading or not; or (T = 0) only to be read.
ASKED = st.tuples(PROMPTS, st.integers(1, 12), st.just(0) | STEPS, st.booleans())
BUDGETS = st.integers(1, 200) | st.none()
few = settings(max_examples=15, derandomize=True)


@pytest.fixture(scope="module", params=["dream", "llada"])
def plain(request, checkpoints):
    """The backbone and the plain algorithm on it: (text) of prompt, length and T; the reading of an all-mask canvas."""
    backbone = load_backbone(checkpoints / request.param, request.param)

    @functools.cache
    def text(prompt, length, steps):
        return reference.decode(backbone, prompt, length, steps)[1]

    @functools.cache
    def reading(prompt, length):
        ((_, read),) = Engine(backbone).run(Queue([("it", Canvas(prompt, length))]))
        return read

    return backbone, text, reading


def canvas(case, reading):
    prompt, length, steps, start = case
    counts = [count for count in reveal_counts(length, steps) if count] if steps else ()
    return Canvas(prompt, length, counts, reading(prompt, length) if steps and start else None)


def run(backbone, canvases, budget):
    """The results by place, and the engine's ledger."""
    engine = Engine(backbone, budget=budget)
    return dict(engine.run(Queue(canvases), make_denoiser("med"))), engine.ledger


@few
@given(st.lists(ASKED, min_size=1, max_size=7), st.lists(ASKED, min_size=1, max_size=7), BUDGETS)
def test_what_is_put_into_the_queue_meanwhile_comes_out_the_same(plain, first, later, budget):
    """One more canvas waits with each result, and each reading is decoded from."""
    backbone, text, reading = plain
    engine, queue, late = Engine(backbone, budget=budget), Queue(), list(enumerate(later, len(first)))
    cases = dict(enumerate([*first, *later]))
    for place in range(len(first)):
        queue.put(place, canvas(cases[place], reading))
    results = {}
    for place, result in engine.run(queue, make_denoiser("med")):
        assert place not in results
        if isinstance(result, ProbeResult):
            prompt, length, *_ = cases[place]
            cases[place] = (prompt, length, 3, True)
            queue.put(place, dataclasses.replace(canvas(cases[place], reading), start=result))
        else:
            results[place] = result
        if late:
            queue.put(late[0][0], canvas(late.pop(0)[1], reading))
    assert results.keys() == cases.keys()
    for place, (prompt, length, steps, _) in cases.items():
        assert isinstance(results[place], Decoded)
        assert results[place].tokens[: results[place].text] == text(prompt, length, steps)
        assert results[place].passes <= min(length, steps)


@few
@given(st.lists(ASKED, min_size=2, max_size=9), st.integers(1, 60))
def test_no_pass_holds_more_than_the_budget_unless_one_canvas_does(plain, cases, budget):
    backbone, _, reading = plain
    sizes, packed = [], Engine._read

    def watched(engine, batch, order):
        sizes.append((len(batch), len(batch.ids)))
        return packed(engine, batch, order)

    canvases = [(place, canvas(case, reading)) for place, case in enumerate(cases)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "_read", watched)
        _, ledger = run(backbone, canvases, budget)
    assert all(size <= budget or canvases == 1 for canvases, size in sizes)
    assert (len(sizes), sum(size for _, size in sizes)) == (ledger["passes"], ledger["tokens"] + ledger["unused"])

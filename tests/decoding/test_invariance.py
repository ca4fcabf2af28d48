"""Padded passes: every product has one shape, whatever the company, and a canvas the same bits.

What a GPU makes of equal shapes only a GPU can tell (``entropy-valley check --thorough``). That the shapes are equal is
seen here.

The price, counted for EV on WMT22 in the 8B model: 1.1 % more tokens and 3.5 % more operations on the whole test set;
of 200 sentences, 14.3 % of the tokens are padding.
"""

import dataclasses
import random
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from entropy_valley.decoding.canvas import Canvas, Queue, Reuse
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.head import HEAD_ROWS, whole_sums
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.lengths.length_head import mean_states
from entropy_valley.model import attention
from entropy_valley.model.attention import pack
from entropy_valley.model.load import load_backbone
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.translation.job import TOKENS, padded_tokens

FILL = 320


@pytest.fixture(scope="module", params=["dream", "llada"])
def narrow(checkpoints, request):
    """In bfloat16, where a CPU's products too depend on their shapes."""
    return load_backbone(checkpoints / request.param, request.param, dtype="bfloat16")


@pytest.fixture(scope="module")
def canvases(narrow):
    """To be decoded and to be read, with a sourceless prompt and without; one is longer than a pass."""
    rng, results = random.Random(3), []
    for place, length in enumerate((1, 2, 3, 5, 8, 13, 21, 34, 9, 9, 310)):
        prompt = [rng.randrange(len(narrow.tokenizer)) for _ in range(rng.randrange(4, 20))]
        counts = [count for count in reveal_counts(length, 6) if count] if place % 3 else []
        results.append(Canvas(prompt, length, counts, sourceless=prompt[:3]))
    return [dataclasses.replace(results[8], prompt=results[8].prompt[::-1]), *results]  # two of one size


class Products(TorchDispatchMode):
    """Counts the matrix products, those of attention apart, by the shapes of what is multiplied."""

    def __init__(self):
        super().__init__()
        self.seen, self.attention = Counter(), Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        shapes = tuple(tuple(one.shape) for one in args if isinstance(one, torch.Tensor))
        if "attention" in name:
            self.attention[name, shapes] += 1
        elif name in ("mm", "addmm", "bmm", "linear", "matmul", "baddbmm"):
            self.seen[name, shapes] += 1
        return function(*args, **(kwargs or {}))


def run(backbone, canvases, order="hybrid", fill=FILL):
    engine = Engine(backbone, fill=fill)
    with Products() as products:
        queue = Queue(canvases, engine.prompts.are_shared)
        results = dict(engine.run(queue, order and make_denoiser(order, {"p": 0.5, "sig": "stepwise_kl"})))
    return results, products, engine.ledger


def test_no_product_depends_on_the_company(narrow, canvases):
    short = list(enumerate(canvases))[:-1]
    together, products, _ = run(narrow, short)
    shapes = set(products.seen)
    assert all({FILL, HEAD_ROWS["cpu"]} & set(sum(given, ())) for _, given in shapes)
    assert all(given[0][0] == 1 for _, given in products.attention)  # each sequence by itself
    for one in short[3:7]:
        alone, its_own, _ = run(narrow, [one])
        assert set(its_own.seen) == shapes
        assert alone == {one[0]: together[one[0]]}


def test_a_canvas_longer_than_a_pass_runs_alone(narrow, canvases):
    named = list(enumerate(canvases))
    together, _, _ = run(narrow, named)
    assert together.keys() == {place for place, _ in named}
    assert run(narrow, named[-1:])[0] == {named[-1][0]: together[named[-1][0]]}


def test_mean_states_of_prompts_are_those_of_each_alone(narrow):
    rng = random.Random(4)
    prompts = [[rng.randrange(len(narrow.tokenizer)) for _ in range(length)] for length in (3, 9, 40, 41, 100)]
    together = dict(mean_states(Engine(narrow, fill=128), prompts))
    for place, prompt in enumerate(prompts):
        ((_, alone),) = mean_states(Engine(narrow, fill=128), [prompt])
        assert torch.equal(alone, together[place])


def test_the_kernel_does_not_split_its_sums(narrow, monkeypatch):
    asked = []

    def kernel(query, *rest, num_splits=None, **options):
        asked.append(num_splits)
        return query

    monkeypatch.setattr(attention, "has_kernel", lambda query: True)
    monkeypatch.setattr(attention, "_kernel", lambda: (kernel, ["num_splits"]))
    with torch.inference_mode():
        for fill in (None, 64):
            narrow.model.hidden_states(pack([[5, 6, 7]]), fill=fill)
    assert set(asked[: len(asked) // 2]) == {None} and set(asked[len(asked) // 2 :]) == {1}


def test_products_do_not_split_theirs_while_a_pass_runs(narrow, canvases, monkeypatch):
    name = "allow_bf16_reduced_precision_reduction"
    settings, seen = torch.backends.cuda.matmul, []

    def said():
        return getattr(settings, name), getattr(settings, f"{name}_split_k")

    before = said()
    with whole_sums():
        assert said() == (False, False)
    assert said() == before == (True, True)
    read = Engine._read
    monkeypatch.setattr(Engine, "_read", lambda self, *given: (seen.append(said()), read(self, *given))[1])
    for fill in (None, FILL):
        run(narrow, [(0, canvases[3])], order=None if not canvases[3].counts else "hybrid", fill=fill)
    assert seen[0] == (True, True) and seen[-1] == (False, False)


@pytest.mark.parametrize(("build", "asked"), [("13.0", ["cublaslt", "before"]), (None, [])])
def test_cublaslt_is_preferred_where_cuda_is_compiled_in(build, asked, monkeypatch):
    """Products whose sums are not split end in a RuntimeError under torch's default, cuBLAS."""
    calls = []
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr(
        torch.backends.cuda, "preferred_blas_library", lambda name=None: calls.append(name) if name else "before"
    )
    with pytest.raises(ZeroDivisionError), whole_sums():
        assert calls == asked[:1]
        raise ZeroDivisionError
    assert calls == asked


@pytest.mark.parametrize(
    ("setting", "device", "wanted"),
    [("auto", "cpu", False), ("auto", "cuda", True), ("auto", "cuda:1", True)]
    + [(value, device, value) for value in (True, False) for device in ("cpu", "cuda")],
)
def test_auto_is_for_gpus(setting, device, wanted):
    spec = {} if setting == "auto" else {"batch_invariant": setting}
    assert padded_tokens(spec, device, None) == (TOKENS[device[:4].rstrip(":")] if wanted else None)
    assert padded_tokens(spec, device, 99) == (99 if wanted else None)


# --- As far as a CPU can tell: what a GPU compiles are two graphs.


@pytest.mark.cluster  # ten seconds, nearly all of them in a C++ compiler
@pytest.mark.parametrize("attention", [BOTH_WAYS, PREFIX])
def test_two_graphs_serve_all_layers_and_passes(attention, llada):
    """Through the real compiler; a canvas longer than a pass is not compiled. Nothing of the model stays changed."""
    torch._dynamo.reset()
    backbone = dataclasses.replace(llada, attention=attention)
    draw, canvases = random.Random(5), []
    for length in (1, 2, 5, 9, 9, 20, 33, 120):
        canvases.append(
            Canvas([draw.randrange(60) for _ in range(draw.randint(4, 20))], length, reuse=Reuse(is_source=length == 9))
        )
    eager = dict(Engine(backbone, fill=96).run(Queue(enumerate(canvases))))
    torch._dynamo.utils.counters.clear()
    compiled = dict(Engine(backbone, fill=96, compile_layers=True).run(Queue(enumerate(canvases))))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # a half each
    for place, read in eager.items():
        assert compiled[place].tokens == read.tokens
        assert compiled[place].entropies == pytest.approx(read.entropies, abs=1e-4)
    assert dict(Engine(backbone, fill=96).run(Queue(enumerate(canvases)))) == eager
    assert compiled[7] == eager[7] and compiled != eager

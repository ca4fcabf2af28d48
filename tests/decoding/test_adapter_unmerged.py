"""An adapter beside the weights: the reference's texts, and results of its own name."""

from __future__ import annotations

import dataclasses
import random

import pytest
import torch
from bench import Bench
from tiny_adapters import adapter_of

from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Canvas, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model.adapters import write_adapter
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone


@pytest.fixture(scope="module", params=["dream", "llada", "llama3"])
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def folder(checkpoints, family, tmp_path_factory):
    """An adapter of some layers and, as in the authors' of LLaDA, of the head."""
    model, generator, pairs = load_backbone(checkpoints / family.name, family.name).model, torch.Generator(), {}
    for name in [name for name, _ in model.named_modules() if name.endswith(("_proj", "lm_head"))]:
        outer, inner = model.get_submodule(name).weight.shape
        pairs[name] = [torch.randn(shape, generator=generator) / 4 for shape in ((3, inner), (outer, 3))]
    folder = tmp_path_factory.mktemp("adapter")
    write_adapter(adapter_of(pairs, 2.0, use_rslora=family.name == "dream"), folder)
    return folder


@pytest.mark.parametrize("family", ["dream", "llada"], indirect=True, scope="module")
def test_the_engine_is_the_reference_on_the_unmerged_model(checkpoints, family, folder):
    backbone = load_backbone(checkpoints / family.name, family.name, adapter=folder, merge=False)
    rng, canvases, expected = random.Random(7), {}, {}
    for place in range(16):
        length, steps = rng.randrange(1, 24), rng.choice([2, 5, 16])
        prompt = [rng.randrange(len(backbone.tokenizer)) for _ in range(rng.randrange(4, 16))]
        canvases[place] = Canvas(prompt, length, [count for count in reveal_counts(length, steps) if count])
        expected[place] = reference.decode(backbone, prompt, length, steps)[1]
    found = dict(Engine(backbone, budget=150).run(Queue(canvases.items()), make_denoiser("med")))
    assert {place: result.tokens[: result.text] for place, result in found.items()} == expected
    assert len({tuple(text) for text in expected.values()}) > 10
    alone = [dict(Engine(backbone).run(Queue([one]), make_denoiser("med"))) for one in list(canvases.items())[:5]]
    assert all(found[place] == result for results in alone for place, result in results.items())


class TestJobs:
    @pytest.fixture
    def bench(self, tmp_path, checkpoints, testset, family, folder):
        bench = Bench(tmp_path, checkpoints, testset, family.name)
        bench.execution = dataclasses.replace(bench.execution, adapter=folder)
        return bench

    def run(self, bench, **settings):
        """The decoder's signature, and what the store and the job had to do with the results."""
        if bench.spec["family"] == "llama3":
            _, entry = bench.generate(**settings)
        else:
            _, entry = bench.decode("ev", **settings)
        return entry["signature"]["decoder"], bench.ledgers()

    def test_nothing_is_shared_with_the_merged_ones(self, bench):
        merged, ledgers = self.run(bench)
        bench.spec["merge_adapter"] = False
        beside, more = self.run(bench, out="beside")
        assert beside == f"{merged}|adapter unmerged" and "unmerged" not in merged
        assert len(more) == 2 * len(ledgers)
        assert [entry["computed"] for entry in more] == 2 * [entry["computed"] for entry in ledgers]

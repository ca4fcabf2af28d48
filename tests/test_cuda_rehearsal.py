"""The road of CUDA without a GPU: passes of the released shapes on tensors that are on ``cuda`` and have no data.

Each operation checks devices, dtypes, shapes and arguments as on a GPU. Bits, speed and kernels are not seen. It needs
a build of torch for CUDA, as `pip install torch==2.11.0` is; such a build is imported without a GPU. COMET's package
does not install beside numpy 2: its passes are skipped where it is missing.
"""

import contextlib
import random

import pytest
import torch
from held import Held
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily

from entropy_valley.decoding.batch import Batch
from entropy_valley.decoding.canvas import NO_REUSE, Canvas, Reuse
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.experiment.checking.size import Size
from entropy_valley.experiment.demo import toy_comet
from entropy_valley.experiment.demo.settings import Estimator
from entropy_valley.model import decoder
from entropy_valley.model.attention import Packed
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import Backbone, empty_model
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.scoring import comet
from entropy_valley.scoring.comet_checkpoint import comet_models
from entropy_valley.training import memory
from entropy_valley.training.adapter import attach_lora, trainable
from entropy_valley.training.loss import MicroBatch, cross_entropies
from entropy_valley.training.settings import Lora
from entropy_valley.translation.job import TOKENS

pytestmark = pytest.mark.skipif(torch.version.cuda is None, reason="this build of torch is for CPUs")
DIFFUSION = sorted(name for name, family in FAMILIES.items() if not family.causal)
LORA = Lora(rank=64, alpha=128, dropout=0.05)


@pytest.fixture(autouse=True)
def a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (80 * 10**9, 80 * 10**9))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield


def model_of(name, layers=None):
    """A released model in bfloat16 on ``cuda``, of full width; without ``layers`` also of full depth."""
    shape = {"max_position_embeddings": 4096, **FAMILIES[name].releases[0].config}
    shape |= {"num_hidden_layers": layers} if layers else {}
    with unset_fake_temporarily():
        empty = empty_model(FAMILIES[name], shape, torch.bfloat16).eval().requires_grad_(False)
    model = empty.to_empty(device="cuda")
    model.tie()  # which `to_empty` undoes
    return model


def read(name, model, attention=BOTH_WAYS, reuse=NO_REUSE, sig=False, copies=1, **engine):
    """A pass of an engine over some canvases: what it says of the masked slots, on the GPU."""
    family, draw = FAMILIES[name], random.Random(1)
    ids = family.releases[0].ids
    special = ids["mask"], ids["eos"], None, ""
    backbone = Backbone(family, model, None, *special, family.shifted, 4096, attention=attention)
    canvases = []
    for length in (1, 7, 30, 30) * copies:
        prompt = [draw.randrange(1000) for _ in range(draw.randint(10, 40))]
        counts = () if sig else [count for count in reveal_counts(length, 8) if count]
        given = {"sourceless": prompt[:4]} if sig else {"reuse": reuse}
        canvases.append(Canvas(prompt, length, counts, **given))
    engine = Engine(backbone, **engine)
    with torch.inference_mode():
        seen = engine._attempt(Batch.of(list(enumerate(canvases)), engine.backbone.mask_id), make_denoiser("med"))
    assert {column.device.type for column in seen.values} == {"cuda"}
    assert [column.dtype for column in seen.values] == [torch.int64, *[torch.float64] * 3]
    assert {len(column) for column in seen.values} == {68 * copies}
    return seen


@pytest.mark.parametrize("engine", [{"fill": TOKENS["cuda"]}, {"budget": BUDGET["cuda"]}], ids=["padded", "plain"])
@pytest.mark.parametrize("name", DIFFUSION)
def test_a_pass_of_full_depth(name, engine):
    read(name, model_of(name), **engine)


@pytest.mark.parametrize("engine", [{"fill": TOKENS["cuda"]}, {}], ids=["padded", "plain"])
@pytest.mark.parametrize("name", ["llada", "dream", "a2d_qwen3"])
def test_other_ways_to_decode(name, engine):
    model = model_of(name, 2)
    read(name, model, PREFIX, **engine)
    read(name, model, reuse=Reuse(4), **engine)
    assert read(name, model, sig=True, **engine).sig.dtype == torch.float64
    attach_lora(model, FAMILIES[name], LORA, 1).eval()
    read(name, model, **engine)


@pytest.mark.parametrize("name", ["llada", "dream", "a2d_qwen3"])
def test_the_trace_of_compiled_layers(name, monkeypatch):
    """As far as the kernels, which are made for a GPU that is there."""
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda part, options, **how: compile(part, backend="aot_eager", **how))
    monkeypatch.setattr(decoder, "_compiled_halves", decoder._compiled_halves.__wrapped__)
    read(name, model_of(name, 2), fill=TOKENS["cuda"], compile_layers=True)


def backward(loss):
    """The gradient of each trained tensor. Torch's own engine asks CUDA for its streams, and only a GPU has some: so
    the functions of the graph are called here, the last one first, and what they return is added up as there."""
    waiting, gradients = {loss.grad_fn: [torch.ones_like(loss)]}, {}
    while waiting:
        node = max(waiting, key=lambda node: node._sequence_nr())
        parts = getattr(node, "apply", node)(*waiting.pop(node))
        parts = parts if isinstance(parts, tuple) else (parts,)
        for (before, place), part in zip(node.next_functions, parts, strict=False):  # some give a None too many
            if before is None or part is None:
                continue
            like = before._input_metadata[place]
            part = part.sum_to_size(like.shape).to(like.dtype)
            assert part.device == like.device
            if hasattr(before, "variable"):
                gradients[before.variable] = part + gradients.get(before.variable, 0)
            else:
                given = waiting.setdefault(before, [None] * len(before._input_metadata))
                given[place] = part if given[place] is None else given[place] + part
    return gradients


@pytest.mark.parametrize("name", ["llada", "dream", "a2d_qwen3", "llama3"])
def test_a_training_pass_and_what_it_keeps(name):
    model = model_of(name, 3)
    demand = memory.demand(model, FAMILIES[name], LORA, 8)
    attach_lora(model, FAMILIES[name], LORA, 1).train()
    ids = torch.zeros(1, 1024, dtype=torch.long, device="cuda")
    rows = torch.arange(1, 1 + round(memory.PREDICTED * 1024), device="cuda")
    batch = MicroBatch(Packed(ids, ids, (64,) * 16), rows, rows, rows.float())
    held = Held()
    held.leave_out([ids, rows, *model.parameters()])
    with held:
        loss = cross_entropies(model, batch, FAMILIES[name].shifted) @ batch.weights
    gradients = backward(loss)
    assert {(one.dtype, one.device.type) for one in (loss, *gradients.values())} == {(torch.float32, "cuda")}
    assert gradients.keys() == {*trainable(model)}
    expected = demand.of(1024, False) - demand.fixed
    assert held.peak <= expected < 2 * held.peak, (held.peak, expected)


@pytest.mark.parametrize("name", ["llada", "dream", "a2d_qwen3"])
def test_a_full_pass_holds_what_the_check_says(name):
    """Thousands of masked slots: the head takes its rows in chunks."""
    model, held = model_of(name, 2), Held()
    held.leave_out(model.parameters())
    with held:
        read(name, model, copies=BUDGET["cuda"] // 180)
    size = Size.of({**FAMILIES[name].releases[0].config, "num_hidden_layers": 2})
    assert held.peak <= size.pass_bytes(BUDGET["cuda"], 2) < 1.4 * held.peak


@pytest.mark.parametrize("kind", ["RegressionMetric", "UnifiedMetric"])
def test_the_passes_of_comet(kind, tmp_path, monkeypatch):
    """Of COMET-22, and of CometKiwi, which reads source and hypothesis in one sequence; alone and in full batches."""
    pytest.importorskip("comet", reason="COMET is not installed here")
    shape = Estimator(seed=1, steps=1, width=1024, layers=24, heads=16, vocabulary=300, context=510)  # XLM-R large
    segments = [(f"source {number}", f"hypothesis {number}", "reference") for number in range(100)]
    segments = segments if kind == "RegressionMetric" else [segment[:2] for segment in segments]
    texts = [text for segment in segments for text in segment]
    given = {"input_segments": ["mt", "src"]} if kind == "UnifiedMetric" else {"pool": "avg"}
    with unset_fake_temporarily(), torch.device("meta"), contextlib.chdir(tmp_path):
        sizes = {"intermediate_size": 4096, "vocab_size": 250002}
        toy_comet.new_model(tmp_path, toy_comet.train_tokenizer(texts, shape), shape, **sizes)
        model = getattr(comet_models(), kind)(
            nr_frozen_epochs=0,
            encoder_model="XLM-RoBERTa",
            pretrained_model=toy_comet.ENCODER,
            layer_transformation="sparsemax",
            layer_norm=False,
            hidden_sizes=[3072, 1024],
            load_pretrained_weights=False,
            local_files_only=True,
            **given,
        )
    model = model.float().eval().to_empty(device="cuda")
    monkeypatch.setattr(type(model), "device", torch.device("cuda"))  # of Lightning, which misses `to_empty`
    # What has no value here: scores, and whether a mask is all ones, as each is, for no batch is padded.
    monkeypatch.setattr(FakeTensor, "tolist", lambda scores: [0.5] * len(scores))
    monkeypatch.setattr(FakeTensor, "item", lambda _: 0.5, raising=False)
    monkeypatch.setattr(FakeTensor, "__bool__", lambda _: True, raising=False)
    prepare = model.prepare_sample

    def prepared(samples, **how):
        with unset_fake_temporarily():  # it asks for the tokens' values
            inputs = prepare(samples, **how)
        return tuple({name: torch.empty_like(tensor) for name, tensor in one.items()} for one in inputs)

    monkeypatch.setattr(model, "prepare_sample", prepared)
    assert dict(comet.unpadded_scores(model, segments)) == dict.fromkeys(segments, 0.5)

"""Bytes that passes of a released shape move beside the weights' products, counted on tensors without data.

    python benchmarks/traffic.py --family llada

Each operation counts its inputs and outputs once, as a kernel that keeps nothing in a cache; a view counts nothing.
"products" are matrix products and attention, "elementwise" all the rest. Of compiled layers inductor itself says what
its kernels read and write. A GPU's caches only lower these.

For LLaDA-8B, beside the products: a padded decoding pass moves 82 GB, with ``decoding.compile_layers`` 26 GB; a
training pass of 8,192 tokens, with adapters in float32, 1,461 GB, with ``training.compile_layers`` 445 GB.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from entropy_valley.model import attention, decoder
from entropy_valley.model.attention import Packed
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import empty_model
from entropy_valley.training.adapter import attach_lora
from entropy_valley.training.loss import MicroBatch, cross_entropies
from entropy_valley.training.memory import PREDICTED
from entropy_valley.training.settings import Lora

PRODUCTS = ("linear", "mm", "addmm", "bmm", "varlen", "flash_attention")
LENGTH = 64  # tokens of a sequence
LORA = Lora(rank=64, alpha=128, dropout=0.05)


class Traffic(TorchDispatchMode):
    """Counts bytes by kind: "products" and "elementwise"."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, given=(), options=None):
        out = operation(*given, **(options or {}))
        if operation.namespace != "prim" and not operation.is_view:
            kind = "products" if any(name in operation.name() for name in PRODUCTS) else "elementwise"
            parts = tree_leaves((given, options, out))
            self.bytes[kind] += sum(part.nbytes for part in parts if isinstance(part, torch.Tensor))
        return out


def measured(family: str, layers: int, run: Callable[[Any], None], trains: bool) -> Counter[str]:
    """The bytes that ``run`` moves on a bfloat16 model of so many layers, with an adapter if it ``trains``."""
    shape = {"max_position_embeddings": 4096, **FAMILIES[family].releases[0].config, "num_hidden_layers": layers}
    model = empty_model(FAMILIES[family], shape, torch.bfloat16).eval()
    if trains:
        attach_lora(model, FAMILIES[family], LORA, 1).train()
    native = mock.patch(
        "torch.nn.functional.dropout", lambda x, p, training, _: torch.native_dropout(x, p, training)[0]
    )
    kernel = mock.patch.object(attention, "has_kernel", lambda query: True)
    with kernel, native, FakeTensorMode(allow_non_fake_inputs=True):
        model.to_empty(device="cpu")
        model.tie()  # which `to_empty` undoes
        model.angles.at(torch.zeros(1, dtype=torch.long), model.device, model.dtype)  # made once, not in each pass
        with Traffic() as traffic, nullcontext() if trains else torch.inference_mode():
            run(model)
    return traffic.bytes


def decoding(tokens: int) -> Callable[[Any], None]:
    """A padded pass."""
    ids = torch.zeros(1, tokens, dtype=torch.long)
    return lambda model: model.hidden_states(Packed(ids, ids, (LENGTH,) * (tokens // LENGTH)), fill=tokens)


def training(family: str, tokens: int) -> Callable[[Any], None]:
    """Forward and backward of a pass."""
    ids, rows = torch.zeros(1, tokens, dtype=torch.long), torch.zeros(round(PREDICTED * tokens), dtype=torch.long)
    batch = MicroBatch(Packed(ids, ids, (LENGTH,) * (tokens // LENGTH)), rows, rows, rows.float())

    def run(model: Any) -> None:
        (cross_entropies(model, batch, FAMILIES[family].shifted) @ batch.weights).backward()

    return run


def parts(family: str, run: Callable[[Any], None], trains: bool) -> tuple[Counter[str], Counter[str]]:
    """Of all layers but the last, which are alike, and of the rest: from models of two and of three layers."""
    two, three = (measured(family, layers, run, trains) for layers in (2, 3))
    count = FAMILIES[family].releases[0].config["num_hidden_layers"] - 1
    layers = Counter({kind: count * (three[kind] - two[kind]) for kind in three})
    return layers, Counter({kind: 2 * two[kind] - three[kind] for kind in three})


def fused(family: str, tokens: int, trains: bool) -> float:
    """Elementwise bytes of all layers but the last where they are compiled, as inductor counts them for the kernels
    that it fused: of a layer with so many tokens, from small ones of two sizes, on a CPU."""
    (less, some), (more, twice) = ((count, _layer_bytes(family, count, trains)) for count in (64, 128))
    layers = FAMILIES[family].releases[0].config["num_hidden_layers"] - 1
    return layers * (some + (twice - some) * (tokens - less) / (more - less))


def _layer_bytes(family: str, tokens: int, trains: bool) -> int:
    """Of both halves of a layer of the released widths; in training forward and backward."""
    from torch._functorch import config as functorch  # here: the compiler takes seconds to load
    from torch._inductor import compile_fx, metrics
    from torch._inductor import config as inductor
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    shape = {"max_position_embeddings": 4096, **FAMILIES[family].releases[0].config}
    model = empty_model(FAMILIES[family], shape | {"num_hidden_layers": 1, "vocab_size": 8}, torch.bfloat16, "cpu")
    if trains:
        attach_lora(model, FAMILIES[family], LORA, 1).train()
    angles = model.angles.at(torch.arange(tokens), model.device, model.dtype)
    widths = model.model.layers[0].self_attn.o_proj.weight.shape  # of the states, and of all heads
    states, attended = (torch.randn(tokens, width, dtype=torch.bfloat16) for width in widths)
    torch._dynamo.reset()
    metrics.reset()
    counting = mock.patch.object(compile_fx.inductor_metrics_log, "isEnabledFor", lambda level: True)
    # Of a kernel from a cache nothing is counted.
    uncached = inductor.patch(fx_graph_cache=False), functorch.patch(enable_autograd_cache=False)
    with counting, uncached[0], uncached[1], nullcontext() if trains else torch.inference_mode():
        before, after = (torch.compile(half) for half in (decoder.Layer.before, decoder.Layer.after))
        (layer,), leaves = model.model.layers, [each.requires_grad_(trains) for each in (states, attended)]
        out = [*before(layer, leaves[0], angles), after(layer, *leaves)]
        if trains:
            sum(each.float().sum() for each in out).backward()
    fused = (size for node, size in metrics.nodes_num_elem if not isinstance(node, ExternKernelSchedulerNode))
    return 4 * sum(fused)  # inductor divides bytes by four


def passes(family: str) -> Iterator[tuple[str, float, float]]:
    """Name, elementwise bytes and bytes of products of each kind of pass. Where layers are compiled, the last counts as
    if it were not: at most so many are moved."""
    kinds = [
        ("a padded decoding pass", decoding(4096), 4096, False),
        ("a training pass", training(family, 8192), 8192, True),
    ]
    for name, run, tokens, trains in kinds:
        layers, rest = parts(family, run, trains)
        products = (layers + rest)["products"]
        yield f"{name}, {tokens:,} tokens", (layers + rest)["elementwise"], products
        yield "at most, with compiled layers", rest["elementwise"] + fused(family, tokens, trains), products


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=sorted(FAMILIES), default="llada")
    for name, elementwise, products in passes(parser.parse_args().family):
        print(f"{name}: elementwise {elementwise / 1e9:.0f} GB, products {products / 1e9:.0f} GB")


if __name__ == "__main__":
    main()

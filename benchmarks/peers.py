"""Public decoders beside ours, on the same weights and canvases.

Each runs from a checkout of its authors, whose folder the user names. Nothing of their code is here, only how it is
called.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from entropy_valley.decoding.canvas import Canvas, Ledger, Queue
from entropy_valley.decoding.engine import Engine
from entropy_valley.decoding.orders import MinimumEntropy, Order
from entropy_valley.errors import InputError, unknown
from entropy_valley.model.load import Backbone, stock_model
from entropy_valley.translation import latency
from entropy_valley.translation.job import padded_tokens

# Their repositories on GitHub, by name.
PEERS = {
    "authors": "Entropy-Valley/Entropy-Valley",
    "llada": "ML-GSAI/LLaDA",
    "dllm": "ZHZisZZ/dllm",
    "fast-dllm": "NVlabs/Fast-dLLM",
}
STEPS = 32  # T. On canvases of at most as many slots, all of them reveal one slot a step
BATCH = 16  # canvases of a padded pass
THRESHOLD = 0.9  # Fast-dLLM's: it also reveals every slot that is so probable


class Stock(torch.nn.Module):
    """The class of transformers on our weights, called as peers call their models: every token attends to all others.

    The mask is never predicted. ``passes`` counts forward passes, ``tokens`` the tokens in them, with padding.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.stock, self.mask_id = stock_model(backbone.family, backbone.model, "sdpa"), backbone.mask_id
        ids = {"mask_token_id": backbone.mask_id, "eos_token_id": backbone.eos_id, "bos_token_id": None}
        self.tokenizer, self.device = SimpleNamespace(**ids), backbone.device
        self.passes = self.tokens = 0

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any) -> Any:
        count, longest = input_ids.shape
        self.passes, self.tokens = self.passes + 1, self.tokens + input_ids.numel()
        seen = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        attend = seen.reshape(count, 1, 1, longest).bool().expand(-1, 1, longest, -1)
        answer = self.stock(input_ids=input_ids, attention_mask=attend, use_cache=False)
        answer.logits[..., self.mask_id] = -torch.inf
        return answer


class MostProbable(Order):
    """A reveal order, that of LLaDA's ``generate``: the slots whose token is the most probable come first."""

    def scores(self, slots: Any) -> torch.Tensor:
        return -slots.values.logprob


def authors(module: Any, model: Stock, canvases: Sequence[Canvas]) -> list[list[int]]:
    """The paper's loop, ``translate_single``. The text of a list of tokens is that list."""
    module.set_mask_token_id(model.mask_id)
    given = {"num_steps": STEPS, "schedule_name": "med", "device": str(model.device)}
    model.tokenizer.decode = lambda tokens, **_: list(tokens)
    texts = []
    for one in canvases:
        prompt = torch.tensor([list(one.prompt)])
        model.tokenizer.encode = lambda text, prompt=prompt, **_: prompt
        texts.append(module.translate_single(model, model.tokenizer, "", one.length, **given)["translation"])
    return texts


def llada(module: Any, model: Stock, canvases: Sequence[Canvas], **given: Any) -> list[list[int]]:
    """LLaDA's ``generate``, and Fast-dLLM's, which also returns how many passes it took."""
    texts = []
    for one in canvases:
        prompt = torch.tensor([list(one.prompt)], device=model.device)
        sizes = {"gen_length": one.length, "block_length": one.length, "steps": STEPS}
        filled = module.generate(model, prompt, **sizes, temperature=0.0, mask_id=model.mask_id, **given)
        filled = filled[0] if isinstance(filled, tuple) else filled
        texts.append(filled[0, len(one.prompt) :].tolist())
    return texts


def dllm(module: Any, model: Stock, canvases: Sequence[Canvas]) -> list[list[int]]:
    """dllm's ``infill``, in padded batches of canvases of similar length."""
    sampler = module.MDLMSampler(model=model, tokenizer=model.tokenizer)
    config = module.MDLMSamplerConfig(steps=STEPS, block_size=None, temperature=0.0, return_dict=False)
    inputs = [[*one.prompt, *[model.mask_id] * one.length] for one in canvases]
    order = sorted(range(len(inputs)), key=lambda place: len(inputs[place]))
    filled: dict[int, list[int]] = {}
    for first in range(0, len(order), BATCH):
        places = order[first : first + BATCH]
        rows = sampler.infill([inputs[place] for place in places], config).tolist()
        filled |= dict(zip(places, rows, strict=True))
    return [filled[place][len(one.prompt) : len(inputs[place])] for place, one in enumerate(canvases)]


# Of each peer: the module of its function in a checkout, what calls it, and the reveal order that is its.
CALLS: dict[str, tuple[str, Callable[[Any, Stock, Sequence[Canvas]], list[list[int]]], Order]] = {
    "authors": ("ladit.decoding.translate", authors, MinimumEntropy()),
    "llada": ("generate", llada, MostProbable()),
    "dllm": ("dllm.core.samplers.mdlm", dllm, MostProbable()),
    "fast-dllm": ("llada.generate", partial(llada, threshold=THRESHOLD), MostProbable()),
}


def folders(given: Sequence[str]) -> dict[str, Path]:
    """The checkout of each peer, from ``NAME=FOLDER``. Raises InputError for another name, and without a folder."""
    checkouts = {}
    for name, _, folder in (one.partition("=") for one in given):
        if name not in PEERS:
            raise InputError("--peer", unknown(name, f"no decoder {name!r}", PEERS), "Write NAME=FOLDER.")
        if not (folder and Path(folder).is_dir()):
            raise InputError("--peer", f"{name}={folder}: no such folder", "Write NAME=FOLDER.")
        checkouts[name] = Path(folder).absolute()
    return checkouts


def compare(backbone: Backbone, canvases: Sequence[Canvas], checkouts: Mapping[str, Path]) -> Iterator[str]:
    """A line for each peer that has a checkout: seconds a canvas, passes, tokens, and the texts that are the same as
    ours in its order."""
    canvases = [one for one in canvases if one.length <= STEPS]
    for name, folder in checkouts.items():
        yield f"{name}: {beside(name, folder, backbone, canvases)}"


def load(name: str, folder: Path) -> Any:
    """The module of a peer. Its import runs code of the checkout, as the user has chosen by naming that folder.

    Raises InputError where it has no such file.
    """
    module = CALLS[name][0]
    file = folder / f"{module.replace('.', '/')}.py"
    if not file.is_file():
        remedy = f"Name a clone of https://github.com/{PEERS[name]}."
        raise InputError(file, "does not exist", remedy)
    sys.path.insert(0, str(folder))
    sys.path.append(str(file.parent))  # from where some of Fast-dLLM's files import others
    return importlib.import_module(module)


def beside(name: str, folder: Path, backbone: Backbone, canvases: Sequence[Canvas]) -> str:
    """What a peer takes beside ours, which runs as the jobs do, on a GPU in padded passes. Ours runs before and after:
    a machine that other programs use shows in how far the two ratios are apart."""
    module, (_, decode, order) = load(name, folder), CALLS[name]
    model, device, count = Stock(backbone), backbone.device.type, len(canvases)
    engine = Engine(backbone, fill=padded_tokens({}, device, None))
    done: dict[int, Any] = {}
    others: list[list[int]] = []

    def ours() -> None:
        engine.ledger = Ledger()
        done.update(engine.run(Queue(enumerate(canvases), engine.prompts.are_shared), order))

    def theirs(most: int) -> None:
        model.passes = model.tokens = 0
        others[:] = decode(module, model, canvases[:most])

    ours()
    theirs(1)  # what is done once is not timed
    first, spent, last = (latency.seconds(run, device) for run in (ours, partial(theirs, count), ours))
    ratios = sorted((spent / first, spent / last))
    ends = [other.index(backbone.eos_id) if backbone.eos_id in other else len(other) for other in others]
    same = sum(done[place].tokens[: done[place].text] == others[place][:end] for place, end in enumerate(ends))
    own, counted = engine.ledger, "{} passes of {:,} tokens"
    return (
        f"{spent / count:.4f} s a canvas, × {ratios[0]:.2f} to {ratios[1]:.2f} of ours; "
        f"{counted.format(model.passes, model.tokens)}, ours {counted.format(own['passes'], own['tokens'])}; "
        f"{same} of {count} texts the same"
    )

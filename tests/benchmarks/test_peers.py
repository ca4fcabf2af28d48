"""Public decoders beside ours, here small stand-ins for them."""

from __future__ import annotations

import re
import sys

import peers
import pytest
from tiny_checkpoints import one_thread  # noqa: F401 - fixture
from workload import SHAPES, make

from entropy_valley.errors import InputError
from entropy_valley.experiment.checking.computations import drawn

# A loop like those of the public decoders: of one canvas, the most probable masked slot at each step.
LOOP = """
import torch

def fill(model, x, mask_id, steps, entropy=False):
    for _ in range(steps):
        masked = x[0] == mask_id
        if not masked.any():
            break
        logits = model(x).logits[0].double()
        scores = logits.log_softmax(-1).max(-1).values
        if entropy:
            scores = -torch.special.entr(logits.softmax(-1)).sum(-1)
        place = scores.where(masked, -torch.inf).argmax()
        x[0, place] = logits[place].argmax()
    return x

def masks(prompt, length, mask_id):
    return torch.cat([prompt, torch.full((1, length), mask_id)], dim=1)
"""
GENERATE = """
def generate(model, prompt, steps=128, gen_length=128, block_length=128, temperature=0.0, mask_id=126336{more}):
    x = fill(model, masks(prompt.to(model.device), gen_length, mask_id), mask_id, steps)
    return x{also}
"""
TRANSLATE = """
def set_mask_token_id(number):
    global MASK
    MASK = number

def translate_single(model, tokenizer, source_text, target_length, num_steps=32, schedule_name="med", device="cuda"):
    prompt = tokenizer.encode(source_text, add_special_tokens=False, return_tensors="pt")[0][None]
    x = fill(model, masks(prompt, target_length, MASK), MASK, num_steps, entropy=True)[0, prompt.shape[1]:].tolist()
    return {"translation": tokenizer.decode(x[: x.index(tokenizer.eos_token_id)] if tokenizer.eos_token_id in x else x)}
"""
INFILL = """
from dataclasses import dataclass

@dataclass
class MDLMSamplerConfig:
    steps: int
    block_size: int | None
    temperature: float
    return_dict: bool

@dataclass
class MDLMSampler:
    model: object
    tokenizer: object

    def infill(self, inputs, config):
        longest, mask = max(map(len, inputs)), self.tokenizer.mask_token_id
        rows = [fill(self.model, torch.tensor([one]), mask, config.steps)[0].tolist() for one in inputs]
        return torch.tensor([row + [self.tokenizer.eos_token_id] * (longest - len(row)) for row in rows])
"""


@pytest.fixture
def checkouts(tmp_path, monkeypatch):
    """Folders with the files and signatures that the peers have."""
    code = {
        "authors": ("ladit/decoding/translate.py", TRANSLATE),
        "llada": ("generate.py", GENERATE.format(more="", also="")),
        "dllm": ("dllm/core/samplers/mdlm.py", INFILL),
        "fast-dllm": ("llada/generate.py", GENERATE.format(more=", threshold=None", also=", 7")),
    }
    for name, (path, text) in code.items():
        (tmp_path / name / path).parent.mkdir(parents=True)
        (tmp_path / name / path).write_text(LOOP + text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield {name: tmp_path / name for name in code}
    for name in {*sys.modules} - before:
        if name.split(".")[0] in ("ladit", "generate", "dllm", "llada"):
            del sys.modules[name]


def backbone():
    return make(SHAPES["tiny"], "cpu", 1).backbone


def same(line):
    """Texts that are the same, and all."""
    return tuple(map(int, re.search(r"; (\d+) of (\d+) texts the same", line).groups()))


def test_each_peer_decodes_the_texts_that_ours_does_in_its_order(checkouts):
    lines = list(peers.compare(backbone(), drawn(8, peers.STEPS), checkouts))
    assert [line.partition(":")[0] for line in lines] == [*peers.PEERS]
    assert all(alike >= 0.9 * count and count > 3 for alike, count in map(same, lines))
    assert len({re.search(r"(\d+) passes of [\d,]+ tokens, ours", line)[1] for line in lines}) == 1  # a slot in each


def test_a_peer_in_another_order_has_other_texts(checkouts):
    file = checkouts["llada"] / "generate.py"
    file.write_text(file.read_text().replace("scores.where(masked, -torch.inf).argmax()", "masked.nonzero()[0, 0]"))
    alike, count = same(peers.beside("llada", checkouts["llada"], backbone(), drawn(12, peers.STEPS)[:6]))
    assert alike < count == 6


def test_what_is_no_clone_of_a_peer_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"Name a clone of https://github\.com/Entropy-Valley/Entropy-Valley"):
        peers.load("authors", tmp_path)
    with pytest.raises(InputError, match="no decoder 'lada'; did you mean llada"):
        peers.folders(["lada=/here"])
    for given in ("llada", "llada=", f"llada={tmp_path}/nowhere"):
        with pytest.raises(InputError, match=r"--peer: llada=.*: no such folder\. Write NAME=FOLDER"):
            peers.folders([given])
    assert peers.folders([f"llada={tmp_path}"]) == {"llada": tmp_path}

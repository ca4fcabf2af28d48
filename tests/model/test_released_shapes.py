"""The released 7-8B checkpoints on meta tensors: every name, every shape, without a byte of weights."""

import pytest
import torch

from entropy_valley import files
from entropy_valley.model.checkpoint import config_arguments
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import empty_model

# What their config.json say of the computation and the special ids. LLaDA's, Dream's, EuroBERT's and LLaMA-3's as
# published; DiffuLLaMA's from a copy saved with transformers. Those of models tuned on chats and of A2D were not to be
# seen: they are taken to be those of their bases, under A2D's own type. iLLaDA's is of its card and its authors' code,
# which say neither theta nor epsilon.
LLADA = {
    "activation_type": "silu", "alibi": False, "attention_dropout": 0.0, "attention_layer_norm": False,
    "block_type": "llama", "d_model": 4096, "embedding_dropout": 0.0, "embedding_size": 126464,
    "eos_token_id": 126081, "include_bias": False, "include_qkv_bias": False, "input_emb_norm": False,
    "layer_norm_type": "rms", "mask_token_id": 126336, "max_sequence_length": 4096, "mlp_hidden_size": 12288,
    "mlp_ratio": 4, "model_type": "llada", "multi_query_attention": None, "n_heads": 32, "n_kv_heads": 32,
    "n_layers": 32, "pad_token_id": 126081, "residual_dropout": 0.0, "rms_norm_eps": 1e-05, "rope": True,
    "rope_full_precision": True, "rope_theta": 500000.0, "scale_logits": False, "vocab_size": 126464,
    "weight_tying": False,
}  # fmt: skip
DREAM = {
    "attention_dropout": 0.0, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 3584,
    "intermediate_size": 18944, "mask_token_id": 151666, "max_position_embeddings": 131072, "model_type": "Dream",
    "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "pad_token_id": 151643,
    "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000.0, "tie_word_embeddings": False,
    "use_sliding_window": False, "vocab_size": 152064,
}  # fmt: skip
LLAMA = {
    "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 4096,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "tie_word_embeddings": False,
}  # fmt: skip
DIFFULLAMA = LLAMA | {
    "bos_token_id": 1, "eos_token_id": 2, "intermediate_size": 11008, "max_position_embeddings": 4096,
    "num_key_value_heads": 32, "rope_theta": 10000.0, "vocab_size": 32000,
}  # fmt: skip
LLAMA3 = LLAMA | {
    "bos_token_id": 128000, "eos_token_id": 128001, "intermediate_size": 14336, "max_position_embeddings": 8192,
    "num_key_value_heads": 8, "rope_theta": 500000.0, "vocab_size": 128256,
}  # fmt: skip
QWEN3 = {
    "attention_bias": False, "attention_dropout": 0.0, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960, "model_type": "a2d-qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 1000000, "sliding_window": None, "tie_word_embeddings": True,
    "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip
QWEN2 = {key: value for key, value in QWEN3.items() if key not in ("head_dim", "attention_bias")} | {
    "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 32768, "model_type": "a2d-qwen2",
    "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
}  # fmt: skip
ILLADA = LLAMA | {
    "eos_token_id": 2, "intermediate_size": 14336, "layer_norm_eps": None, "max_position_embeddings": 8192,
    "model_type": "illada", "num_key_value_heads": 8, "rope_theta": 500000.0, "tie_word_embeddings": True,
    "vocab_size": 155136,
}  # fmt: skip
EUROBERT = LLAMA | {
    "eos_token_id": 128001, "hidden_dropout": 0.0, "hidden_size": 768, "intermediate_size": 3072,
    "mask_token_id": 128002, "max_position_embeddings": 8192, "model_type": "eurobert",
    "num_attention_heads": 12, "num_hidden_layers": 12, "num_key_value_heads": 12, "pad_token_id": 128001,
    "rope_theta": 250000, "vocab_size": 128256,
}  # fmt: skip
PUBLISHED = {
    "GSAI-ML/LLaDA-8B-Base": LLADA,
    "GSAI-ML/LLaDA-8B-Instruct": LLADA,
    "GSAI-ML/LLaDA-1.5": LLADA,
    "GSAI-ML/iLLaDA-8B-Base": ILLADA,
    "Dream-org/Dream-v0-Base-7B": DREAM,
    "Dream-org/Dream-v0-Instruct-7B": DREAM,
    "diffusionfamily/diffullama": DIFFULLAMA,
    "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1": QWEN3,
    "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1": QWEN2,
    "EuroBERT/EuroBERT-210m": EUROBERT,
    "meta-llama/Meta-Llama-3-8B": LLAMA3,
}
RELEASES = {release.repository: family for family in FAMILIES.values() for release in family.releases}


def llada_tensors():
    square, wide = (4096, 4096), (12288, 4096)
    block = dict.fromkeys(("q_proj", "k_proj", "v_proj", "attn_out"), square)
    block |= {"ff_proj": wide, "up_proj": wide, "ff_out": wide[::-1], "attn_norm": (4096,), "ff_norm": (4096,)}
    outside = {"wte": (126464, 4096), "ff_out": (126464, 4096), "ln_f": (4096,)}
    named = {f"blocks.{i}.{name}": shape for i in range(32) for name, shape in block.items()} | outside
    return {f"model.transformer.{name}.weight": shape for name, shape in named.items()}


def stock_tensors(layers, width, ffn, kv, vocabulary, biases=False, queries=None, head=None, tied=False):
    """``queries``: the width of all heads of q, where it is not that of the model; ``head``: that of one head of a
    model with norms of q and k; ``tied``: no tensor of the LM head."""
    queries = queries or width
    attention = {"q_proj": (queries, width), "k_proj": (kv, width), "v_proj": (kv, width), "o_proj": (width, queries)}
    feed = {"gate_proj": (ffn, width), "up_proj": (ffn, width), "down_proj": (width, ffn)}
    block = {f"self_attn.{name}.weight": shape for name, shape in attention.items()}
    block |= {f"self_attn.{name}.bias": attention[name][:1] for name in ("q_proj", "k_proj", "v_proj") if biases}
    block |= {f"mlp.{name}.weight": shape for name, shape in feed.items()}
    block |= dict.fromkeys(("input_layernorm.weight", "post_attention_layernorm.weight"), (width,))
    block |= {"self_attn.q_norm.weight": (head,), "self_attn.k_norm.weight": (head,)} if head else {}
    outside = {"model.embed_tokens": (vocabulary, width), "model.norm": (width,)}
    outside |= {} if tied else {"lm_head": (vocabulary, width)}
    return {f"model.layers.{i}.{name}": shape for i in range(layers) for name, shape in block.items()} | {
        f"{name}.weight": shape for name, shape in outside.items()
    }


TENSORS = {
    "GSAI-ML/LLaDA-8B-Base": llada_tensors(),
    "GSAI-ML/LLaDA-8B-Instruct": llada_tensors(),
    "GSAI-ML/LLaDA-1.5": llada_tensors(),
    "GSAI-ML/iLLaDA-8B-Base": stock_tensors(32, 4096, 14336, 1024, 155136, tied=True),
    "Dream-org/Dream-v0-Base-7B": stock_tensors(28, 3584, 18944, 512, 152064, biases=True),
    "Dream-org/Dream-v0-Instruct-7B": stock_tensors(28, 3584, 18944, 512, 152064, biases=True),
    "diffusionfamily/diffullama": stock_tensors(32, 4096, 11008, 4096, 32000),
    "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1": stock_tensors(
        28, 1024, 3072, 1024, 151936, queries=2048, head=128, tied=True
    ),
    "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1": stock_tensors(
        24, 896, 4864, 128, 151936, biases=True, tied=True
    ),
    "EuroBERT/EuroBERT-210m": stock_tensors(12, 768, 3072, 768, 128256),
    "meta-llama/Meta-Llama-3-8B": stock_tensors(32, 4096, 14336, 1024, 128256),
}


@pytest.fixture(scope="module", params=sorted(RELEASES))
def repository(request):
    return request.param


def test_every_name_and_shape_is_the_released_one(repository, tmp_path):
    family = RELEASES[repository]
    files.write_json(tmp_path / "config.json", PUBLISHED[repository])
    model = empty_model(family, config_arguments(tmp_path, family), torch.bfloat16)
    ours = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    assert {family.released_name(name): shape for name, shape in ours.items()} == TENSORS[repository]
    assert {family.stock_name(name): shape for name, shape in TENSORS[repository].items()} == ours


def test_a_release_is_known_before_its_download(repository):
    family = RELEASES[repository]
    assert family.release(repository).config.items() <= family.to_stock(PUBLISHED[repository]).items()

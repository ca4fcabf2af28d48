"""From a checkpoint folder, and an adapter, to a frozen bidirectional model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from entropy_valley import files
from entropy_valley.backbone import checkpoint
from entropy_valley.backbone.families import Family, find_family
from entropy_valley.backbone.packing import ATTENTION, hidden_states, pack
from entropy_valley.backbone.tokenizer import load_tokenizer, token_id
from entropy_valley.errors import InputError

_ADAPTER_PREFIX = "base_model.model."


@dataclass(frozen=True)
class Backbone:
    """A frozen masked diffusion model, its tokenizer and the ids that decoding needs."""

    family: Family
    model: Any
    tokenizer: Any
    mask_id: int
    eos_id: int
    pad_id: int
    bos_id: int | None
    digest: str
    shifted: bool  # whether the logits of slot i are read from row i - 1; as the family has it unless asked otherwise

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def context(self) -> int:
        """The most tokens that prompt and canvas may have together."""
        return self.model.config.max_position_embeddings


def load_backbone(
    folder: str | Path,
    family: str,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    adapter: str | Path | None = None,
    shifted: bool | None = None,
) -> Backbone:
    """Load a released checkpoint into its stock class, tensor by tensor, and merge an adapter's W + (alpha/r) B A.

    Raises InputError for a missing, extra, misshapen or truncated tensor, a config or a special token that the
    family does not have, and an adapter trained on another checkpoint.
    """
    folder, kind = Path(folder), find_family(family)
    # The current GPU by its number: safetensors takes a bare "cuda" for the first one, in every process.
    device = str(torch.empty(0, device=device).device)
    model = empty_model(kind, checkpoint.config_arguments(folder, kind), torch_dtype(dtype))
    _fill(model, kind, folder, device)
    digest = checkpoint.checkpoint_digest(folder)
    if adapter is not None:
        merge_adapter(model, Path(adapter), digest)
    shifted = kind.shifted if shifted is None else shifted
    backbone = _with_tokenizer(kind, model.eval().requires_grad_(False), folder, digest, shifted)
    _assert_bidirectional(backbone)
    return backbone


def torch_dtype(name: str) -> torch.dtype:
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def empty_model(family: Family, arguments: dict[str, Any], dtype: torch.dtype, device: str = "meta") -> Any:
    """The family's stock class with our attention; on ``meta`` its tensors take no memory."""
    import transformers

    stock = getattr(transformers, family.architecture)
    config = stock.config_class(**arguments)
    with torch.device(device):
        return stock._from_config(config, attn_implementation=ATTENTION, dtype=dtype)


def new_model(
    family: str,
    *,
    vocabulary: int,
    width: int,
    layers: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    context: int,
    seed: int,
) -> Any:
    """A float32 model of the family with random weights, for pre-training and tests."""
    arguments = dict(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=ffn,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=context,
        rope_theta=10000.0,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
    )
    torch.manual_seed(seed)
    return empty_model(find_family(family), arguments, torch.float32, "cpu")


def _fill(model: Any, family: Family, folder: Path, device: str) -> None:
    wanted, unknown, misshapen = dict(model.named_parameters()), [], []
    for name, tensor in checkpoint.tensors(folder, device):
        if name.endswith(".rotary_emb.inv_freq"):
            continue  # older exports carry the rotary table, which is computed
        target = wanted.pop(family.stock_name(name), None)
        if target is None:
            unknown.append(name)
        elif target.shape != tensor.shape:
            misshapen.append(f"{name} is {tuple(tensor.shape)}, not {tuple(target.shape)}")
        else:
            _set(model, family.stock_name(name), tensor.to(target.dtype))
    missing = [family.released_name(name) for name in wanted]
    problems = [
        f"{what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
        for what, names in (("missing", missing), ("extra", unknown), ("of another shape", misshapen))
        if names
    ]
    if problems:
        raise InputError(folder, f"tensors {'; '.join(problems)}", f"This is not a whole {family.name} checkpoint.")
    # The rotary table is no tensor of a checkpoint: on `meta` it was never computed.
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config, device=device)


def _set(model: Any, name: str, tensor: torch.Tensor) -> None:
    module, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(module), leaf, torch.nn.Parameter(tensor, requires_grad=False))


def merge_adapter(model: Any, adapter: Path, backbone_digest: str) -> None:
    """Add (alpha/r) B A to each adapted weight in place, in float32.

    Raises InputError where the adapter names another backbone or a module that the model has not.
    """
    checkpoint.adapter_card(adapter, backbone_digest)
    settings = files.read_json(adapter / "adapter_config.json")
    weights = dict(checkpoint.read_shard(adapter / "adapter_model.safetensors"))
    for name in sorted(weights):
        if name.endswith(".lora_A.weight"):
            module = model.get_submodule(name.removeprefix(_ADAPTER_PREFIX).removesuffix(".lora_A.weight"))
            up, down = (
                weights[key].to(module.weight.device, torch.float32) for key in (name.replace("lora_A", "lora_B"), name)
            )
            merged = module.weight.float() + (settings["lora_alpha"] / settings["r"]) * (up @ down)
            module.weight.data.copy_(merged)


def _with_tokenizer(family: Family, model: Any, folder: Path, digest: str, shifted: bool) -> Backbone:
    tokenizer = load_tokenizer(folder, family)
    ids = {
        "mask": token_id(tokenizer, tokenizer.mask_token or family.mask_token, family.mask_id),
        "eos": token_id(tokenizer, family.eos_token, tokenizer.eos_token_id),
    }
    released = files.read_json(folder / "config.json")
    for kind, value in ids.items():
        expected = released.get(f"{kind}_token_id", value)
        if value is None or value != expected:
            raise InputError(
                folder,
                f"the tokenizer's {kind} id is {value}, config.json says {expected}",
                "Use the tokenizer that was released with the checkpoint.",
            )
    return Backbone(
        family,
        model,
        tokenizer,
        ids["mask"],
        ids["eos"],
        token_id(tokenizer, family.pad_token, ids["eos"]),
        token_id(tokenizer, family.bos_token),
        digest,
        shifted,
    )


@torch.inference_mode()
def _assert_bidirectional(backbone: Backbone) -> None:
    """A causal model would pass every shape check and decode nonsense: look whether a later token is seen."""
    first, other = (
        [backbone.eos_id, backbone.mask_id, backbone.mask_id],
        [backbone.eos_id, backbone.mask_id, backbone.eos_id],
    )
    states = hidden_states(backbone.model, pack([first, other], backbone.device))
    if torch.equal(states[0], states[3]):
        raise RuntimeError("the model is causal: a later token does not change an earlier state")

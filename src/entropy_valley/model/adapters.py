"""LoRA adapters in PEFT's format. PEFT attaches, checks, merges and reads out; files and names are ours."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_serializer

from entropy_valley import files
from entropy_valley.errors import InputError, brief
from entropy_valley.model import checkpoint
from entropy_valley.model.families import Family, Size, find_family
from entropy_valley.model.prompt import BOTH_WAYS, Attention, attention_of
from entropy_valley.settings import Direction, Foreign, Share, read_object

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_STOCK = re.compile(r"model\.(layers\.\d+\.\w+\.|norm\.|embed_tokens\.)[\w.]+|lm_head\.[\w.]+")
# A name's end as PEFT matches it: names, dots and digits, and no expression of others that takes long to match.
Pattern = Annotated[str, Field(pattern=r"^\^?(\.\*)?([\w.]|\\[.w]|\\d\+?)+\$?$")]


class Settings(Foreign):
    """The keys of PEFT's ``LoraConfig`` that change what an adapter computes."""

    peft_type: Literal["LORA"] = "LORA"
    r: Size = 8
    lora_alpha: float = 8
    lora_dropout: Share = 0.0
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    init_lora_weights: Literal[True, False, "gaussian", "eva", "orthogonal", "mica", "pissa", "olora"] = True
    rank_pattern: dict[Pattern, Size] | None = None
    alpha_pattern: dict[Pattern, float] | None = None
    base_model_name_or_path: str | None = None

    @field_serializer("lora_alpha")
    def _as_peft(self, alpha: float) -> int | float:
        return int(alpha) if alpha.is_integer() else alpha

    @property
    def changes_base(self) -> bool:
        """Whether PEFT takes the first A and B out of the backbone's weights, whenever it attaches such an adapter."""
        return self.init_lora_weights in ("pissa", "olora")


# Other keys that may be there: of training and origin, and of what the tensors themselves say.
_IGNORED = {
    *("auto_mapping", "inference_mode", "peft_version", "revision", "runtime_config", "task_type"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "modules_to_save"),
    *("bias", "eva_config", "megatron_core", "qalora_group_size"),
}


def of_pattern(patterns: Mapping[str, Any] | None, module: str, default: Any) -> Any:
    """The value of the first pattern that matches a module's name, as PEFT looks it up."""
    if not patterns:
        return default
    from peft.utils.other import get_pattern_key

    return patterns.get(get_pattern_key([*patterns], module), default)


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter of a stock model.

    ``weights`` has PEFT's tensors by stock names, float32 on the CPU: A (rank, in) and B (out, rank) of each adapted
    layer, what else PEFT has there, and whole tensors that replace the backbone's. In ``settings``, patterns are full
    stock names.
    """

    weights: Mapping[str, Tensor]
    settings: Settings

    @property
    def modules(self) -> list[str]:
        """The adapted layers."""
        return sorted({name.partition(".lora_")[0] for name in self.weights if ".lora_" in name})

    @property
    def changes_head(self) -> bool:
        """Whether it changes the LM head or the embeddings, which a tied head shares."""
        return any(name.startswith(("lm_head.", "model.embed_tokens.")) for name in self.weights)

    @property
    def parameters(self) -> int:
        return sum(tensor.numel() for tensor in self.weights.values())

    @property
    def digest(self) -> str:
        """A digest of names, scalings, shapes and float32 values; it does not depend on the file's layout."""
        described = {}
        for name, tensor in sorted(self.weights.items()):
            described[name] = [list(tensor.shape), files.bytes_digest(tensor.numpy().tobytes())]
        content: list[Any] = []
        for module in self.modules:
            rank = len(self.weights[module + _A])
            alpha = (self.settings.alpha_pattern or {}).get(module, self.settings.lora_alpha)
            scaling = alpha / (math.sqrt(rank) if self.settings.use_rslora else rank)
            content.append([module, scaling, [described.pop(module + _A), described.pop(module + _B)]])
        content += described.items()
        if self.settings.changes_base:
            content.append(self.settings.init_lora_weights)
        return files.digest(content)


def from_peft(
    weights: Mapping[str, Tensor],
    content: Mapping[str, Any],
    family: Family,
    model: Module | None = None,
    *,
    place: object,
) -> Adapter:
    """An adapter from PEFT's tensors and the content of its ``adapter_config.json``.

    Raises one InputError that lists settings that are not known here, tensors that do not fit one another, the settings
    or the ``model`` (on ``meta``) or are not finite; and of an adapter that changes nothing.
    """
    settings = Settings.model_validate(content)
    problems = []
    for key, value in content.items():
        if value and key not in Settings.model_fields.keys() | _IGNORED:
            problems.append(f"{key} is {value!r}, which is not computed here")
    tensors: dict[str, Tensor] = {}
    ranks, alphas = {}, {}
    for name, tensor in weights.items():
        bare = name.removeprefix(_PREFIX).replace(".base_layer.", ".")
        stock = family.stock_name(bare)
        if not tensor.isfinite().all():
            problems.append(f"{stock} is not finite")
        tensors[stock] = tensor.detach().cpu().float().contiguous()
        if stock.endswith(_A):
            module, written = stock.removesuffix(_A), bare.removesuffix(_A)
            ranks[module] = of_pattern(settings.rank_pattern, written, settings.r)
            alphas[module] = of_pattern(settings.alpha_pattern, written, settings.lora_alpha)
    update = {
        "rank_pattern": {module: rank for module, rank in ranks.items() if rank != settings.r},
        "alpha_pattern": {module: alpha for module, alpha in alphas.items() if alpha != settings.lora_alpha},
        "init_lora_weights": settings.init_lora_weights if settings.changes_base else True,
    }
    adapter = Adapter(tensors, settings.model_copy(update=update))
    problems += _misfits(adapter, model)
    changing = [tensor for name, tensor in tensors.items() if not name.endswith(_A)]
    if not settings.changes_base and not any(tensor.any() for tensor in changing):
        problems.append("it changes nothing: every lora_B is zero")
    if problems:
        shown = "; ".join(brief(problem, 300) for problem in problems[:8])  # a lost tensor is often one of hundreds
        raise InputError(place, shown, f"Give a trained LoRA adapter of {family.name}, saved by PEFT.")
    return adapter


def _misfits(adapter: Adapter, model: Module | None) -> list[str]:
    """What is wrong with the names of tensors; with a model, what PEFT finds wrong when it attaches them to a copy."""
    names = adapter.weights.keys()
    strange = [f"{brief(name, 100)} is of no layer" for name in names if not _STOCK.fullmatch(name)]
    halves = {module + side for module in adapter.modules for side in (_A, _B)}
    strange += [f"{name} is missing" for name in sorted(halves - names)]
    if strange or model is None:
        return strange
    empty = {name: tensor.to("meta") for name, tensor in adapter.weights.items()}
    try:
        return attach(copy.deepcopy(model), Adapter(empty, adapter.settings))
    except (RuntimeError, ValueError) as error:  # torch has a line for each tensor of another shape, behind a heading
        first, *lines = str(error).splitlines()
        return [line.strip(" \t.") for line in lines or [first]]


# --- Attached and merged by PEFT.


def inject(model: Module, settings: Settings, modules: list[str]) -> None:
    """Put PEFT's layers around ``modules`` of ``model``: A and B as they start, in float32, or empty on ``meta``."""
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.tuners_utils import cast_adapter_dtype

    config = LoraConfig(**settings.model_dump(exclude_none=True), target_modules=modules)
    inject_adapter_in_model(config, model, low_cpu_mem_usage=next(model.parameters()).is_meta)
    cast_adapter_dtype(model, "default")


def attach(model: Module, adapter: Adapter) -> list[str]:
    """Put an adapter beside the weights of ``model``, in float32. Returns which tensors have no place there, or are
    missing: none of an adapter that was read for this model."""
    from peft import set_peft_model_state_dict

    lora = {name: tensor for name, tensor in adapter.weights.items() if ".lora_" in name}
    whole = {name: tensor for name, tensor in adapter.weights.items() if name not in lora}
    strange = model.load_state_dict(whole, strict=False).unexpected_keys
    inject(model, adapter.settings, adapter.modules)
    loaded: Any = set_peft_model_state_dict(model, lora)
    problems = [f"{name} is of no layer" for name in [*strange, *loaded.unexpected_keys]]
    problems += [f"{name} is missing" for name in loaded.missing_keys if ".lora_" in name]
    return problems


def merge(model: Module, place: object) -> None:
    """Merge the adapter that is beside the weights and comes from ``place``.

    PEFT adds in float32, and rounds once to the weights' dtype. Raises InputError for a bias of LoRA beside a layer
    without one.
    """
    from peft.tuners.lora import LoraLayer

    for name, layer in [*model.named_modules()]:
        if isinstance(layer, LoraLayer):
            base = layer.get_base_layer()
            if layer.lora_bias["default"] and base.bias is None:
                remedy = "Set `decoding.merge_adapter: false`, or `merge=False` in Python."
                raise InputError(place, f"lora_bias: {name} has no bias that it could be merged into", remedy)
            layer.merge()
            model.set_submodule(name, base)


# --- Adapter folders in PEFT's layout: read, written, exported.

WEIGHTS, SETTINGS, FACTS = "adapter_model.safetensors", "adapter_config.json", "adapter.json"
LOSSES = "losses.csv"  # of one that was trained here
LARGEST = 2**35  # bytes of an adapter's weights, of which all are read
FILES = (WEIGHTS, SETTINGS, FACTS)


def read_adapter(folder: Path, family: Family, model: Module | None = None) -> Adapter:
    """Read a PEFT folder whose modules have the family's stock or released names.

    Raises InputError as :func:`from_peft` does, and where ``adapter.json`` has the digest of other tensors.
    """
    checkpoint.require_safetensors([path.name for path in folder.glob("*")], folder)
    settings = read_object(folder / SETTINGS, Settings)
    checkpoint.read_shapes(files.regular(folder / WEIGHTS, LARGEST))
    with checkpoint.open_shard(folder / WEIGHTS) as shard:
        weights = {name: shard.get_tensor(name) for name in shard.keys()}  # noqa: SIM118 - not a mapping
    adapter = from_peft(weights, settings, family, model, place=folder)
    recorded = read_facts(folder).get("adapter_digest")
    if recorded and recorded != adapter.digest:
        raise InputError(
            folder / WEIGHTS,
            f"its tensors have the digest {adapter.digest}, but {FACTS} says {recorded}",
            "Remove the folder and train again; for an adapter of your own, remove its adapter.json.",
        )
    return adapter


def write_adapter(adapter: Adapter, folder: Path, family: Family | None = None) -> None:
    """Write a PEFT folder in the released names of ``family``; without a family in stock names, our own layout.

    Modules are full paths, because LLaDA's head and its blocks' FFN output are both called ``ff_out``. PEFT's defaults
    are left out, because older versions refuse keys that they do not know.
    """

    def named(stock: str) -> str:
        return family.released_name(stock) if family else stock

    modules = adapter.modules
    tensors = {}
    for name, tensor in adapter.weights.items():
        module, _, leaf = name.rpartition(".")
        own = f"{module}.base_layer.{leaf}" if module in modules else name
        tensors[_PREFIX + named(own)] = tensor
    settings = adapter.settings.model_dump()
    for key in ("rank_pattern", "alpha_pattern"):
        settings[key] = {named(module): value for module, value in (settings[key] or {}).items()}
    if not adapter.settings.changes_base:
        del settings["init_lora_weights"]
    settings |= {"inference_mode": True, "target_modules": sorted(map(named, modules))}
    checkpoint.write_tensors(tensors, folder / WEIGHTS)
    files.write_json(folder / SETTINGS, {key: value for key, value in settings.items() if value})


class Spec(Foreign):
    """The params of an adapter's training."""

    backbone: str = ""
    family: str = ""
    direction: Direction = "en-de"
    prompt: str = "{src}"
    bos: bool = False
    shifted: bool = False
    attention: Attention = BOTH_WAYS


class Facts(Foreign):
    """What is read of ``adapter.json``; any part of it may be left out."""

    family: str = ""
    backbone_digest: str = ""
    adapter_digest: str = ""
    spec: Spec = Spec()
    adopted: bool = False
    source: dict[str, Any] = Field({})
    pairs: int = 0
    seed: int = 0


def read_facts(folder: Path) -> dict[str, Any]:
    """The content of ``adapter.json``; {} without one."""
    return read_object(folder / FACTS, Facts) if (folder / FACTS).exists() else {}


def checked_facts(folder: Path, backbone_digest: str, attention: str = BOTH_WAYS) -> dict[str, Any]:
    """The content of ``adapter.json``; {} without one.

    Raises InputError if it names another backbone, or says that the adapter was trained with another ``attention``.
    """
    facts = read_facts(folder)
    backbone = facts.get("backbone_digest", backbone_digest)
    if backbone != backbone_digest:
        remedy = "Use the backbone it was trained on, or train again."
        raise InputError(folder, f"trained on backbone {backbone}, not {backbone_digest}", remedy)
    trained = attention_of(facts.get("spec", {}))
    if facts and trained != attention:
        remedy = f"Use a backbone with `attention: {trained}`, or train an adapter of this one."
        raise InputError(folder, f"trained with attention {trained}, not {attention}", remedy)
    return facts


def adapter_digest(folder: Path, family: Family, backbone_digest: str, attention: str = BOTH_WAYS) -> str:
    """The digest of an adapter's tensors: from ``adapter.json``, or computed where there is none.

    Raises InputError as :func:`checked_facts` does.
    """
    facts = checked_facts(folder, backbone_digest, attention)
    return facts.get("adapter_digest") or read_adapter(folder, family).digest


def export(folder: Path, out: Path, layout: str = "released", family: str | None = None) -> None:
    """Write the adapter in ``folder`` to the new folder ``out``, in ``released`` or ``stock`` names.

    ``family`` is needed only if no ``adapter.json`` names it; that file is copied. Raises InputError for a family that
    is unknown or not the adapter's, an unreadable adapter, and an existing ``out``.
    """
    if out.exists():
        raise InputError(out, "exists already", "Name a new folder.")
    facts = read_facts(folder)
    if not family and not facts.get("family"):
        raise InputError(folder, f"no {FACTS} names its family", "Name it by --family.")
    kind = find_family(family) if family else find_family(facts["family"], folder / FACTS)
    if facts.get("family", kind.name) != kind.name:
        raise InputError(folder, f"of family {facts['family']}, not {kind.name}", "Leave out --family.")
    adapter = read_adapter(folder, kind)
    with files.atomic_folder(out) as new:
        write_adapter(adapter, new, kind if layout == "released" else None)
        if facts:
            files.write_json(new / FACTS, facts)

"""LoRA adapters in PEFT's format: files are read and checked here; PEFT attaches and merges."""

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
from entropy_valley.errors import InputError, listed
from entropy_valley.model import checkpoint
from entropy_valley.model.families import Family, Size, find_family
from entropy_valley.model.prompt import BOTH_WAYS, Attention, attention_of
from entropy_valley.settings import Direction, Foreign, Share, read_object

if TYPE_CHECKING:
    from peft.tuners.lora import LoraLayer
    from torch import Tensor
    from torch.nn import Module

_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_STOCK = re.compile(r"model\.(layers\.\d+\.\w+\.|norm\.|embed_tokens\.)[\w.]+|lm_head\.[\w.]+")
# Settings of training and origin. Of modules that are saved whole, and of trained biases, the tensors say enough.
_HARMLESS = {
    *("auto_mapping", "inference_mode", "peft_version", "revision", "runtime_config", "task_type"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "modules_to_save"),
    *("bias", "eva_config", "megatron_core", "qalora_group_size"),
}


# A name's end as PEFT matches it: names, dots and digits, and no expression of others that takes long to match.
Pattern = Annotated[str, Field(pattern=r"^\^?(\.\*)?([\w.]|\\[.w]|\\d\+?)+\$?$")]


class Settings(Foreign):
    """What PEFT's ``LoraConfig`` is made of, from ``adapter_config.json``."""

    peft_type: Literal["LORA"] = "LORA"
    r: Size = 8
    lora_alpha: float = 8
    lora_dropout: Share | None = 0.0
    use_rslora: bool | None = False
    use_dora: bool | None = False
    lora_bias: bool | None = False
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
        return sorted({name.rpartition(".lora_")[0] for name in self.lora})

    @property
    def changes_head(self) -> bool:
        """Whether it changes the LM head or the embeddings, which a tied head shares."""
        changed = {*self.modules, *(name.rpartition(".")[0] for name in self.weights)}
        return bool(changed & {"lm_head", "model.embed_tokens"})

    @property
    def lora(self) -> dict[str, Tensor]:
        """The tensors of PEFT's layers; the others are whole."""
        return {name: tensor for name, tensor in self.weights.items() if ".lora_" in name}

    @property
    def changes_something(self) -> bool:
        factors = [(self.weights[name + _A], self.weights[name + _B]) for name in self.modules]
        more = self.settings.changes_base or len(self.weights) > 2 * len(factors)
        return bool(more) or any(down.any() and up.any() for down, up in factors)

    @property
    def parameters(self) -> int:
        return sum(tensor.numel() for tensor in self.weights.values())

    @property
    def digest(self) -> str:
        """A digest of names, scalings, shapes and float32 values; it does not depend on the file's layout."""
        described = {
            name: [list(tensor.shape), files.bytes_digest(tensor.numpy().tobytes())]
            for name, tensor in sorted(self.weights.items())
        }
        content: list[Any] = []
        for module in self.modules:
            factors = [described.pop(module + name) for name in (_A, _B)]
            content.append([module, self._scaling(module), factors])
        content += described.items()
        if self.settings.changes_base:
            content.append(self.settings.init_lora_weights)
        return files.digest(content)

    def _scaling(self, module: str) -> float:
        rank, settings = len(self.weights[module + _A]), self.settings
        alpha = (settings.alpha_pattern or {}).get(module, settings.lora_alpha)
        return alpha / (math.sqrt(rank) if settings.use_rslora else rank)


def from_peft(
    weights: Mapping[str, Tensor],
    content: Mapping[str, Any],
    family: Family,
    model: Module | None = None,
    *,
    place: object,
) -> Adapter:
    """An adapter from PEFT's tensors and the content of its ``adapter_config.json``.

    Raises one InputError that lists the settings of functions that are not known here, and tensors that do not fit the
    settings or the ``model`` (on ``meta``), or are not finite; and of an adapter that changes nothing.
    """
    settings = Settings.model_validate(content)
    known = Settings.model_fields.keys() | _HARMLESS
    others = [f"{key} is {value!r}" for key, value in sorted(content.items()) if value and key not in known]
    if settings.lora_bias and (settings.use_dora or settings.changes_base):
        others.append("lora_bias is True beside use_dora or init_lora_weights")
    tensors: dict[str, Tensor] = {}
    ranks, alphas = {}, {}
    for name, tensor in weights.items():
        bare = re.sub(f"^({re.escape(_PREFIX)})+", "", name).replace(".base_layer.", ".")
        bare = re.sub(r"\.(lora_[AB])\.[^.]+\.(weight|bias)$", r".\1.\2", bare)
        stock = family.stock_name(bare)
        if stock in tensors:
            others.append(f"{stock} is there twice")
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
    problems = {
        "of another function": others,
        "tensors that do not fit": _misfits(adapter, model),
        "not finite": sorted(name for name, tensor in tensors.items() if not tensor.isfinite().all()),
    }
    problem = "; ".join(f"{what}: {listed(names)}" for what, names in problems.items() if names)
    if not problem and not adapter.changes_something:
        problem = "it changes nothing: every lora_B is zero, or its lora_A"
    if problem:
        raise InputError(place, problem, f"Give a trained LoRA adapter of {family.name}, saved by PEFT.")
    return adapter


def _misfits(adapter: Adapter, model: Module | None) -> list[str]:
    """What PEFT would find missing, too many or of another shape; without a ``model``, names that no stock class has,
    and matrices that do not fit their rank."""
    shapes = {name: tuple(tensor.shape) for name, tensor in adapter.weights.items()}
    if model is None:
        expected, whole = {}, {name: shape for name, shape in shapes.items() if _STOCK.fullmatch(name)}
        for module in adapter.modules:
            if _STOCK.fullmatch(module + _A):
                rank = of_pattern(adapter.settings.rank_pattern, module, adapter.settings.r)
                expected[module + _A] = rank, *shapes.get(module + _A, ())[1:]
                expected[module + _B] = *shapes.get(module + _B, ())[:1], rank
    else:
        expected, whole = _expected(adapter, copy.deepcopy(model))
    misfits = []
    for name in sorted(shapes.keys() | expected.keys()):
        right = expected.get(name) or whole.get(name)
        if right is None:
            misfits.append(f"{name} is of no layer")
        elif (shape := shapes.get(name)) != right:
            misfits.append(f"{name} is {shape or 'missing'}, not {right}")
    return misfits


def _expected(adapter: Adapter, model: Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The shapes that PEFT's tensors have beside a model, and those of the model's own."""
    from peft import get_peft_model_state_dict
    from torch.nn import Linear

    whole = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
    layers = {name for name, module in model.named_modules() if isinstance(module, Linear)}
    if not (modules := [name for name in adapter.modules if name in layers]):
        return {}, whole
    inject(model, adapter.settings.model_copy(update={"init_lora_weights": True}), modules, empty=True)
    lora = get_peft_model_state_dict(model, save_embedding_layers=False)
    return {name: tuple(tensor.shape) for name, tensor in lora.items()}, whole


# --- Attached and merged by PEFT.


def inject(model: Module, settings: Settings, modules: list[str], empty: bool = False) -> None:
    """Put PEFT's layers around ``modules`` of ``model``: A and B as they start, in float32; ``empty``: on ``meta``."""
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.tuners_utils import cast_adapter_dtype

    known = settings.model_dump(exclude={"peft_type", "base_model_name_or_path"}, exclude_none=True)
    inject_adapter_in_model(LoraConfig(**known, target_modules=modules), model, low_cpu_mem_usage=empty)
    cast_adapter_dtype(model, "default")


def attach(model: Module, adapter: Adapter) -> None:
    """Put an adapter beside the weights of ``model``, in float32."""
    from peft import set_peft_model_state_dict

    for name in adapter.weights.keys() - adapter.lora.keys():
        model.get_parameter(name).data.copy_(adapter.weights[name])
    inject(model, adapter.settings, adapter.modules)
    set_peft_model_state_dict(model, adapter.lora)


def attached(model: Module) -> dict[str, LoraLayer]:
    """PEFT's layers, by name."""
    from peft.tuners.lora import LoraLayer

    return {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}


def merge(model: Module, place: object) -> None:
    """Merge the adapter that is beside the weights and comes from ``place``.

    PEFT adds in float32, and rounds once to the weights' dtype. Raises InputError for a bias of LoRA beside a layer
    without one.
    """
    for name, layer in attached(model).items():
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

    tensors = {}
    for name, tensor in adapter.weights.items():
        module, _, leaf = name.rpartition(".")
        own = f"{module}.base_layer.{leaf}" if module in adapter.modules else name
        tensors[_PREFIX + named(own)] = tensor
    settings = adapter.settings.model_dump()
    for key in ("rank_pattern", "alpha_pattern"):
        settings[key] = {named(module): value for module, value in (settings[key] or {}).items()}
    if not adapter.settings.changes_base:
        del settings["init_lora_weights"]
    settings |= {"inference_mode": True, "target_modules": sorted(map(named, adapter.modules))}
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
    if facts.get("backbone_digest", backbone_digest) != backbone_digest:
        raise InputError(
            folder,
            f"trained on backbone {facts['backbone_digest']}, not {backbone_digest}",
            "Use the backbone it was trained on, or train again.",
        )
    if facts and (trained := attention_of(facts.get("spec", {}))) != attention:
        raise InputError(
            folder,
            f"trained with attention {trained}, not {attention}",
            f"Use a backbone with `attention: {trained}`, or train an adapter of this one.",
        )
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
    if not (folder / SETTINGS).is_file():
        raise InputError(folder, f"is no adapter: it has no {SETTINGS}", "Name the folder of an adapter.")
    facts = read_facts(folder)
    if not (family or facts.get("family")):
        raise InputError(folder, f"no {FACTS} names its family", "Name it by --family.")
    kind = find_family(family) if family else find_family(facts["family"], folder / FACTS)
    if facts.get("family", kind.name) != kind.name:
        raise InputError(folder, f"of family {facts['family']}, not {kind.name}", "Leave out --family.")
    adapter = read_adapter(folder, kind)
    with files.atomic_folder(out) as new:
        write_adapter(adapter, new, kind if layout == "released" else None)
        if facts:
            files.write_json(new / FACTS, facts)

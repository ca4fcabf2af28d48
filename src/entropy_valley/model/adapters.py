"""LoRA adapters in PEFT's format: files are read and checked here, PEFT attaches and merges; folders, the model card."""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, PositiveInt

from entropy_valley import files
from entropy_valley.errors import InputError, listed
from entropy_valley.model import checkpoint
from entropy_valley.model.families import Family, find_family
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX, Attention, attention_of
from entropy_valley.results import CARD
from entropy_valley.settings import Direction, Foreign, read_object

if TYPE_CHECKING:
    from peft.tuners.lora import LoraLayer
    from torch import Tensor
    from torch.nn import Module

# --- What is read of PEFT's files: nothing of them is executed, and PEFT gets only what is known.

_PREFIX = "base_model.model."
_LORA = re.compile(r"(.+)\.(?:lora_([AB])(?:\.[^.]+)?\.(weight|bias)|(lora_magnitude_vector)(?:\..+)?)")
_WHOLE = re.compile(r"(.+?)(?:\.base_layer)?\.(weight|bias)")
_ADAPTED = re.compile(r"model\.layers\.\d+\.(self_attn|mlp)\.\w+|lm_head")  # the linear layers of a stock class
_CHANGED = re.compile(rf"{_ADAPTED.pattern}|model\.layers\.\d+\.\w+|model\.(norm|embed_tokens)")
# Settings of training and origin. Of modules that are saved whole, and of trained biases, the tensors say enough.
_HARMLESS = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version", "revision", "runtime_config"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "task_type"),
    *("bias", "eva_config", "megatron_core", "modules_to_save", "qalora_group_size"),
}
BASE_CHANGES = ("pissa", "olora")  # what PEFT takes out of the backbone's weights, by itself, whenever it attaches


def _simple(patterns: dict[str, Any]) -> dict[str, Any]:
    for pattern in patterns:
        if "(" in pattern or len(re.findall(r"[*+{]", pattern)) > 3:
            raise ValueError(f"not {pattern!r}, which may take long to match")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not {pattern!r}: {error}") from None
    return patterns


class Settings(Foreign):
    """What PEFT's ``LoraConfig`` is made of, from ``adapter_config.json``."""

    peft_type: Literal["LORA"] = "LORA"
    r: PositiveInt = 8
    lora_alpha: int | float = 8
    lora_dropout: float | None = 0.0
    use_rslora: bool | None = False
    use_dora: bool | None = False
    lora_bias: bool | None = False
    init_lora_weights: Literal[True, False, "gaussian", "eva", "orthogonal", "mica", "pissa", "olora"] = True
    rank_pattern: Annotated[dict[str, PositiveInt], AfterValidator(_simple)] | None = {}
    alpha_pattern: Annotated[dict[str, int | float], AfterValidator(_simple)] | None = {}
    base_model_name_or_path: str | None = None

    @property
    def changes_base(self) -> bool:
        return self.init_lora_weights in BASE_CHANGES


def of_pattern(patterns: Mapping[str, Any] | None, module: str, default: Any) -> Any:
    """The value of the first pattern that matches a module's name, as PEFT looks it up."""
    if not patterns:
        return default
    from peft.utils.other import get_pattern_key

    return patterns.get(get_pattern_key(patterns, module), default)


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter of a stock model.

    ``layers`` has PEFT's tensors by stock module and by what follows its name, float32 on the CPU: of an adapted linear
    layer ``lora_A.weight`` (rank, in), ``lora_B.weight`` (out, rank) and perhaps ``lora_B.bias`` and
    ``lora_magnitude_vector`` (out,); of any module a whole ``weight`` or ``bias`` that replaces the backbone's. In
    ``settings``, patterns are full stock names.
    """

    layers: Mapping[str, Mapping[str, Tensor]]
    settings: Settings

    @property
    def adapted(self) -> list[str]:
        return sorted(module for module, parts in self.layers.items() if "lora_A.weight" in parts)

    @property
    def lora(self) -> dict[str, Tensor]:
        """The tensors of PEFT's layers, by full stock name."""
        return {
            f"{module}.{name}": tensor
            for module in self.adapted
            for name, tensor in self.layers[module].items()
            if name.startswith("lora_")
        }

    @property
    def parameters(self) -> int:
        return sum(tensor.numel() for parts in self.layers.values() for tensor in parts.values())

    @property
    def digest(self) -> str:
        """A digest of names, scalings, shapes and float32 values; it does not depend on the file's layout."""

        def described(tensor: Tensor) -> list[Any]:
            return [list(tensor.shape), files.bytes_digest(tensor.numpy().tobytes())]

        content: list[Any] = []
        for module, parts in sorted(self.layers.items()):
            factors = [described(parts[name]) for name in ("lora_A.weight", "lora_B.weight") if name in parts]
            others = [[name, described(parts[name])] for name in sorted(parts) if not _is_factor(name)]
            content.append([module, self._scaling(module) if factors else None, factors, *others])
        if self.settings.changes_base:
            content.append(self.settings.init_lora_weights)
        return files.digest(content)

    def _scaling(self, module: str) -> float:
        rank, settings = len(self.layers[module]["lora_A.weight"]), self.settings
        alpha = (settings.alpha_pattern or {}).get(module, settings.lora_alpha)
        return alpha / (math.sqrt(rank) if settings.use_rslora else rank)


def _is_factor(name: str) -> bool:
    return name in ("lora_A.weight", "lora_B.weight")


def from_peft(
    weights: Mapping[str, Tensor],
    content: Mapping[str, Any],
    family: Family,
    model: Module | None = None,
    *,
    place: object,
) -> Adapter:
    """An adapter from PEFT's tensors and the content of its ``adapter_config.json``.

    Raises one InputError that lists the settings of functions that are not known here, tensors that are not LoRA's or
    the backbone's, do not fit the settings, one another or the ``model``, or are not finite; and of an adapter that
    changes nothing.
    """
    settings = Settings.model_validate(content)
    unknown = [
        f"{key} is {value!r}"
        for key, value in sorted(content.items())
        if value and key not in _HARMLESS and key not in Settings.model_fields
    ]
    if settings.lora_bias and (settings.use_dora or settings.changes_base):
        unknown.append("lora_bias is True beside use_dora or another start of A and B")
    layers, names, extra = _by_module(weights, family)
    ranks, alphas, misfits = {}, {}, []
    for module, parts in sorted(layers.items()):
        rank = of_pattern(settings.rank_pattern, names[module], settings.r)
        alpha = of_pattern(settings.alpha_pattern, names[module], settings.lora_alpha)
        ranks |= {module: rank} if rank != settings.r else {}
        alphas |= {module: alpha} if alpha != settings.lora_alpha else {}
        misfits += [f"{names[module]}{misfit}" for misfit in _misfits(module, parts, settings, rank, model)]
    infinite = [f"{names[module]}.{part}" for module in layers for part, one in layers[module].items() if not _sound(one)]
    problems = {
        "settings of another function": unknown,
        "tensors of another function": extra,
        "tensors that do not fit": misfits,
        "empty or not finite": infinite,
    }
    problem = "; ".join(f"{what}: {listed(sorted(found))}" for what, found in problems.items() if found)
    if not layers:
        problem = problem or "no LoRA matrices"
    elif not problem and not settings.changes_base and not any(map(_changes, layers.values())):
        problem = "it changes nothing: every lora_B is zero, or its lora_A"
    if problem:
        raise InputError(place, problem, f"Give a trained LoRA adapter of {family.name}, saved by PEFT.")
    changes: dict[str, Any] = {"rank_pattern": ranks, "alpha_pattern": alphas}
    if not settings.changes_base:
        changes["init_lora_weights"] = True
    return Adapter(layers, settings.model_copy(update=changes))


def _by_module(
    weights: Mapping[str, Tensor], family: Family
) -> tuple[dict[str, dict[str, Tensor]], dict[str, str], list[str]]:
    """Tensors by stock module and part, each module's name in the file, and the names of all other tensors."""
    layers: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
    names, extra = {}, []
    for name, tensor in weights.items():
        bare = re.sub(f"^({re.escape(_PREFIX)})+", "", name)
        if match := _LORA.fullmatch(bare):
            part = match[4] or f"lora_{match[2]}.{match[3]}"
        elif match := _WHOLE.fullmatch(bare):
            part = match[2]
        module = family.stock_name(match[1]) if match else ""
        if match and tensor.is_floating_point() and part not in layers[module]:
            layers[module][part], names[module] = tensor.detach().cpu().float().contiguous(), match[1]
        else:
            extra.append(name)
    return {module: parts for module, parts in layers.items() if parts}, names, extra


def _misfits(
    module: str, parts: Mapping[str, Tensor], settings: Settings, rank: int, model: Module | None
) -> list[str]:
    """What of a module's tensors is missing, too many, or not of the shape of the ``model``'s weight; without a model,
    of a name that no stock class has."""
    from torch.nn import Linear

    shapes = {name: tuple(tensor.shape) for name, tensor in parts.items()}
    lora = {name: shape for name, shape in shapes.items() if name.startswith("lora_")}
    if model is None:
        known = (_ADAPTED if lora else _CHANGED).fullmatch(module)
        inner, outer = lora.get("lora_A.weight", (0,))[-1], lora.get("lora_B.weight", (0,))[0]
        expected = {name: shape for name, shape in shapes.items() if name not in lora} if known else {}
    else:
        layer = dict(model.named_modules()).get(module)
        known = isinstance(layer, Linear) if lora else layer
        outer, inner = layer.weight.shape if lora and known else (0, 0)
        own = dict(layer.named_parameters(recurse=False)) if layer else {}
        expected = {name: tuple(own[name].shape) for name in shapes if name in own}
    if lora:
        expected |= {"lora_A.weight": (rank, inner), "lora_B.weight": (outer, rank)}
        expected |= {"lora_B.bias": (outer,)} if settings.lora_bias else {}
        expected |= {"lora_magnitude_vector": (outer,)} if settings.use_dora else {}
    if not known:
        return [" is not there"]
    return [
        f".{name} is {shapes.get(name, 'missing')}, not {expected.get(name, 'there')}"
        for name in sorted(shapes.keys() | expected.keys())
        if shapes.get(name) != expected.get(name)
    ]


def _sound(tensor: Tensor) -> bool:
    return bool(tensor.numel() and tensor.isfinite().all())


def _changes(parts: Mapping[str, Tensor]) -> bool:
    """Whether a module's tensors can change what it computes: whole ones and biases do, B A unless one of both is zero."""
    factors = [tensor for name, tensor in parts.items() if _is_factor(name)]
    return len(parts) > len(factors) or all(tensor.any() for tensor in factors)


# --- Attached and merged by PEFT.


def inject(model: Module, settings: Settings, modules: list[str]) -> None:
    """Put PEFT's layers around ``modules`` of ``model``: A and B as they start, in float32."""
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.tuners_utils import cast_adapter_dtype

    known = settings.model_dump(exclude={"peft_type", "base_model_name_or_path"}, exclude_none=True)
    inject_adapter_in_model(LoraConfig(**known, target_modules=modules), model)
    cast_adapter_dtype(model, "default")


def attach(model: Module, adapter: Adapter) -> None:
    """Put an adapter beside the weights of ``model``, in float32."""
    from peft import set_peft_model_state_dict

    for module, parts in adapter.layers.items():
        for name in ("weight", "bias"):
            if name in parts:
                model.get_parameter(f"{module}.{name}").data.copy_(parts[name])
    inject(model, adapter.settings, adapter.adapted)
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
    files.regular(folder / WEIGHTS, LARGEST)
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
    names = {module: family.released_name(module) if family else module for module in adapter.layers}
    tensors = {}
    for module, parts in adapter.layers.items():
        for part, tensor in parts.items():
            within = "base_layer." if module in adapter.adapted and part in ("weight", "bias") else ""
            tensors[f"{_PREFIX}{names[module]}.{within}{part}"] = tensor
    settings = adapter.settings.model_dump()
    for key in ("rank_pattern", "alpha_pattern"):
        settings[key] = {names[module]: value for module, value in settings[key].items()}
    if not adapter.settings.changes_base:
        del settings["init_lora_weights"]
    settings |= {"inference_mode": True, "target_modules": sorted(names[module] for module in adapter.adapted)}
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


# --- The model card of an adapter: what the Hugging Face hub shows of its folder. It is not tracked: edit it freely.

_CARD = """\
---
{head}---

# {name}, {source} → {target}: a LoRA adapter for {kind} translation

An adapter for {base}{origin}. Its rank is {rank}, its alpha {alpha}. `{facts}` has all that is known of it, such as the
prompt.

## Use

{command}PEFT loads it on {layout}; `entropy-valley export` converts between the authors' names of modules and the stock
class's.{attention}

## Limits

Nothing here says how well it translates: score it on a test set that it has not seen. The licence of the adapter is for
its owner to add.{licence}
"""
_COMMAND = """```bash
entropy-valley translate --direction {} --backbone {} --adapter FOLDER < in.txt > out.txt
```

"""
_PREFIX_NOTE = """ It was trained with `attention: prefix`: the rows of the prompt attend to the
prompt alone. PEFT does not mask the canvas from them, and alone computes another function."""


def write_card(folder: Path, layout: str = "stock") -> None:
    """Write the card of the adapter in a folder; none where there is one, or where no ``adapter.json`` says enough.

    ``layout`` names the modules: those of the ``stock`` transformers class, or the ``released`` ones.
    """
    facts = read_facts(folder)
    if "spec" in facts and not (folder / CARD).exists():
        with contextlib.suppress(KeyError):  # too little is said
            files.write_text(folder / CARD, card(facts, read_object(folder / SETTINGS, Settings), layout))


def card(facts: Mapping[str, Any], settings: Mapping[str, Any], layout: str = "stock") -> str:
    """The card, as Markdown behind the hub's YAML block, from ``adapter.json`` and ``adapter_config.json``."""
    spec, base, family = facts["spec"], settings.get("base_model_name_or_path"), find_family(facts["family"])
    kind = "autoregressive" if family.causal else "masked diffusion"
    source, target = spec["direction"].split("-")
    head = {"library_name": "peft", "pipeline_tag": "translation", "language": [source, target]}
    head |= {"tags": [kind.replace(" ", "-"), "machine-translation", "lora"]} | ({"base_model": base} if base else {})
    origin = f", taken from {facts['source'].get('repository') or 'a given folder'}" if facts.get("adopted") else None
    release = family.release(base) if base else None
    return _CARD.format(
        head=yaml.safe_dump(head, sort_keys=False),
        name=spec["backbone"],
        source=source,
        target=target,
        kind=kind,
        base=f"[{base}](https://huggingface.co/{base})" if base else f"the checkpoint `{facts['backbone_digest']}`",
        origin=origin or f", trained on {facts['pairs']:,} sentence pairs with seed {facts['seed']}",
        rank=settings["r"],
        alpha=settings["lora_alpha"],
        facts=FACTS,
        layout="the model class of its authors" if layout == "released" else "its stock class in transformers",
        command="" if family.causal else _COMMAND.format(spec["direction"], spec["backbone"]),
        attention=_PREFIX_NOTE if attention_of(spec) == PREFIX else "",
        licence=f" Its checkpoint is under the licence {release.licence}." if release else "",
    )

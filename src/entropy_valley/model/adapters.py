"""LoRA adapters in PEFT's format: names and config, folders read, written, merged and exported, the model card."""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import Field, PositiveInt

from entropy_valley import files
from entropy_valley.errors import InputError, listed
from entropy_valley.model import checkpoint
from entropy_valley.model.families import Family, find_family
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX, Attention, attention_of
from entropy_valley.results import CARD
from entropy_valley.settings import Direction, Foreign, read_object

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

# --- A LoRA adapter and its format in PEFT: tensor names and ``adapter_config.json``.

_PREFIX = "base_model.model."
_MATRIX = re.compile(rf"(?:{re.escape(_PREFIX)})*+(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")
_STOCK = re.compile(r"model\.layers\.\d+\.(self_attn|mlp)\.\w+|lm_head")  # the linear layers of a stock class
_PEFT_DEFAULT = 8  # of both `r` and `lora_alpha`

# Settings of training and origin, and the settings that are read here.
_HARMLESS = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version", "revision", "runtime_config"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "task_type"),
    *("eva_config", "lora_dropout", "megatron_core", "qalora_group_size"),
    *("lora_alpha", "r", "use_rslora"),
}
# Other ways to initialise (PiSSA, OLoRA, LoftQ, …) change the backbone's own weights.
_PLAIN = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, "gaussian", "eva", "orthogonal")}


class Settings(Foreign):
    """What is read of ``adapter_config.json``."""

    r: PositiveInt = _PEFT_DEFAULT
    lora_alpha: float = _PEFT_DEFAULT
    lora_dropout: float | None = None
    use_rslora: bool | None = None
    base_model_name_or_path: str | None = None


@dataclass(frozen=True)
class Adapter:
    """Changes W + scaling · B A of a stock model's linear layers, all of one rank and scaling.

    ``pairs`` holds A (rank, in) and B (out, rank) by stock module name, float32 on the CPU. The scaling is alpha / rank
    (Hu et al., 2022), or alpha / √rank with ``rslora`` (Kalajdzievski, 2023). ``dropout`` was used in training;
    ``base`` is the backbone's repository or path, None if unknown.
    """

    pairs: Mapping[str, tuple[Tensor, Tensor]]
    alpha: float
    rslora: bool = False
    dropout: float = 0.0
    base: str | None = None

    @property
    def rank(self) -> int:
        return len(next(iter(self.pairs.values()))[0])

    @property
    def scaling(self) -> float:
        return self.alpha / (math.sqrt(self.rank) if self.rslora else self.rank)

    @property
    def parameters(self) -> int:
        return sum(down.numel() + up.numel() for down, up in self.pairs.values())

    @property
    def digest(self) -> str:
        """A digest of names, scalings, shapes and float32 values; it does not depend on the file's layout."""

        def described(tensor: Tensor) -> list[Any]:
            return [list(tensor.shape), files.bytes_digest(tensor.numpy().tobytes())]

        pairs = sorted(self.pairs.items())
        return files.digest([[module, self.scaling, list(map(described, pair))] for module, pair in pairs])


def from_peft(
    weights: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    family: Family,
    model: Module | None = None,
    *,
    place: object,
) -> Adapter:
    """An adapter from PEFT's tensors and its ``adapter_config.json``.

    Raises one InputError that lists all settings and tensors with which PEFT computes something other than W + scaling
    · B A with one scaling, and matrices without their pair, of a wrong rank or, with a ``model``, that fit no linear
    layer of it.
    """
    sides, written, extra = _by_module(weights, family)
    pairs = {module: (sides[module]["A"], sides[module]["B"]) for module in sorted(sides) if len(sides[module]) == 2}
    problems = {
        "settings of another function": _other_functions(settings),
        "tensors beside plain LoRA matrices": extra,
        "matrices without their pair": [written[module] for module in sides if len(sides[module]) == 1],
        "matrices that fit no linear layer": _misfits(pairs, written, settings.get("r", _PEFT_DEFAULT), model),
    }
    problem = "; ".join(f"{what}: {listed(names)}" for what, names in problems.items() if names)
    if problem or not pairs:
        raise InputError(
            place, problem or "no LoRA matrices", f"Give a plain LoRA adapter of {family.name}, saved by PEFT."
        )
    return Adapter(
        {module: (down.float().contiguous(), up.float().contiguous()) for module, (down, up) in pairs.items()},
        settings.get("lora_alpha", _PEFT_DEFAULT),
        bool(settings.get("use_rslora")),
        settings.get("lora_dropout") or 0.0,
        settings.get("base_model_name_or_path"),
    )


def to_peft(adapter: Adapter, family: Family | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """PEFT's tensors and ``adapter_config.json``: in the released names of ``family``; without a family in stock names.

    Modules are full paths, because LLaDA's head and its blocks' FFN output are both called ``ff_out``. PEFT's defaults
    are left out, because older versions refuse keys that they do not know.
    """
    names = {module: family.released_name(module) if family else module for module in adapter.pairs}
    tensors = {
        f"{_PREFIX}{names[module]}.lora_{side}.weight": tensor
        for module, pair in adapter.pairs.items()
        for side, tensor in zip("AB", pair, strict=True)
    }
    settings = {
        "peft_type": "LORA",
        "base_model_name_or_path": adapter.base,
        "inference_mode": True,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": adapter.dropout,
        "use_rslora": adapter.rslora,
        "target_modules": sorted(names.values()),
    }
    return tensors, {key: value for key, value in settings.items() if value}


def _by_module(
    weights: Mapping[str, Tensor], family: Family
) -> tuple[dict[str, dict[str, Tensor]], dict[str, str], list[str]]:
    """Tensors by stock module and side, each module's name in the file, and the names of all other tensors."""
    sides: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
    written, extra = {}, []
    for name, tensor in weights.items():
        match = _MATRIX.fullmatch(name)
        module = family.stock_name(match[1]) if match else name
        if match and match[2] not in sides[module] and tensor.is_floating_point() and tensor.dim() == 2:
            sides[module][match[2]], written[module] = tensor, match[1]
        else:
            extra.append(name)
    return sides, written, extra


def _other_functions(settings: Mapping[str, Any]) -> list[str]:
    """Settings that may change W + scaling · B A, unknown ones of later PEFT versions included."""
    return [
        f"{key} is {value!r}"
        for key, value in sorted(settings.items())
        if key not in _HARMLESS and value and value not in _PLAIN.get(key, ())
    ]


def _misfits(
    pairs: Mapping[str, tuple[Tensor, Tensor]], written: Mapping[str, str], rank: int, model: Module | None
) -> list[str]:
    """Pairs that are not of the ``rank`` of the settings, or whose product is not of the shape of the weight; without a
    ``model``, those whose name no stock class has, as of another family."""
    from torch.nn import Linear

    modules = () if model is None else model.named_modules()
    weights = {name: tuple(module.weight.shape) for name, module in modules if isinstance(module, Linear)}
    misfits = []
    for module, (down, up) in pairs.items():
        product = len(up), down.shape[1]
        weight = product if model is None and _STOCK.fullmatch(module) else weights.get(module)
        if len(down) != rank or up.shape[1] != rank or product != weight:
            shapes = f"A {tuple(down.shape)}, B {tuple(up.shape)}, rank {rank}"
            misfits.append(f"{written[module]} has {shapes} on a weight {weight or 'that is not there'}")
    return misfits


# --- Adapter folders in PEFT's layout: read, written, merged or attached, exported.

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
    """Write a PEFT folder in the released names of ``family``; without a family in stock names, our own layout."""
    tensors, settings = to_peft(adapter, family)
    checkpoint.write_tensors(tensors, folder / WEIGHTS)
    files.write_json(folder / SETTINGS, settings)


def merge_adapter(model: Module, adapter: Adapter) -> None:
    """Add scaling · B A to each adapted weight in place, in float32."""
    import torch

    for module, pair in adapter.pairs.items():
        weight = model.get_parameter(f"{module}.weight")
        down, up = (tensor.to(weight.device, torch.float32) for tensor in pair)
        weight.data.copy_(weight.float() + adapter.scaling * (up @ down))


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

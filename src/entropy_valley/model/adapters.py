"""LoRA adapters in PEFT's format. PEFT attaches, checks and merges them; files and names are ours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from entropy_valley import files
from entropy_valley.errors import InputError, brief, listed
from entropy_valley.model import checkpoint
from entropy_valley.model.families import Family, Size, find_family
from entropy_valley.model.prompt import BOTH_WAYS, Attention, attention_of
from entropy_valley.settings import Direction, Foreign, JsonObject, Rate, Share, misfits, read_object

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor

    from entropy_valley.model.decoder import Decoder

WEIGHTS, SETTINGS, FACTS = "adapter_model.safetensors", "adapter_config.json", "adapter.json"
FILES = (WEIGHTS, SETTINGS, FACTS)
LOSSES = "losses.csv"  # of one that was trained here

_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_STOCK = re.compile(r"(model\.(layers\.\d+|norm|embed_tokens)|lm_head)\.([\w.]+\.)?(lora_m\w+|weight|bias)")
# A name's end as PEFT matches it: names, dots and digits, and no expression of others that takes long to match.
Pattern = Annotated[str, Field(pattern=r"^\^?(\.\*)?([\w.]|\\[.w]|\\d\+?)+\$?$")]


class Settings(Foreign, extra="forbid"):
    """The keys of PEFT's ``LoraConfig`` that change what an adapter computes; another key is an error."""

    peft_type: Literal["LORA"]
    r: Size
    lora_alpha: Rate
    lora_dropout: Share = 0.0
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    init_lora_weights: Literal[True, False, "gaussian", "eva", "orthogonal", "mica", "pissa", "olora"] = True
    rank_pattern: dict[Pattern, Size] | None = None
    alpha_pattern: dict[Pattern, Rate] | None = None
    base_model_name_or_path: str | None = None


# Other keys that may be there: of training and origin, and of what the tensors themselves say.
_IGNORED = {
    *("auto_mapping", "inference_mode", "peft_version", "revision", "runtime_config", "task_type"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "modules_to_save"),
    *("bias", "eva_config", "megatron_core", "qalora_group_size"),
}


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter of a stock model.

    ``weights`` has PEFT's tensors by stock names, float32 on the CPU: A (rank, in) and B (out, rank) of each adapted
    layer, what else PEFT has there, and whole tensors that replace the backbone's. ``settings`` are those of
    :class:`Settings` that are not PEFT's defaults, and rank and alpha; patterns are full stock names.
    """

    weights: Mapping[str, Tensor]
    settings: JsonObject

    @property
    def modules(self) -> list[str]:
        """The adapted layers."""
        return sorted({name.partition(".lora_")[0] for name in self.weights if ".lora_" in name})

    @property
    def digest(self) -> str:
        """A digest of names, scalings, shapes and float32 values; it does not depend on the file's layout."""
        described: dict[str, Any] = {}
        for name, tensor in sorted(self.weights.items()):
            described[name] = [list(tensor.shape), files.bytes_digest(tensor.numpy().tobytes())]
        content: list[Any] = []
        for module in self.modules:
            rank = len(self.weights[module + _A])
            alpha = self.settings.get("alpha_pattern", {}).get(module, self.settings["lora_alpha"])
            scaling = alpha / (math.sqrt(rank) if self.settings.get("use_rslora") else rank)
            content.append([module, scaling, [described.pop(module + _A), described.pop(module + _B)]])
        content += described.items()
        if "init_lora_weights" in self.settings:
            content.append(self.settings["init_lora_weights"])
        return files.digest(content)


def from_peft(weights: Mapping[str, Tensor], content: JsonObject, family: Family, place: object) -> Adapter:
    """An adapter from PEFT's tensors, in stock or released names, and the keys of its ``adapter_config.json``.

    Raises one InputError that lists settings that are not known here, and tensors that are of no layer, not finite or
    without their other half. An adapter that changes nothing is an error, too.
    """
    from peft.utils.other import get_pattern_key

    settings = {key: value for key, value in content.items() if value and key not in _IGNORED}
    problems = [f"{SETTINGS}: {problem}" for problem in misfits(Settings, settings)]
    # PEFT takes these A and B out of the backbone's weights, whenever it attaches such an adapter.
    changes_base = settings.get("init_lora_weights") in ("pissa", "olora")
    if not changes_base:
        settings.pop("init_lora_weights", None)  # it says nothing about trained tensors
    given = {name.removeprefix(_PREFIX): tensor.detach().cpu().float().contiguous() for name, tensor in weights.items()}
    adapter = Adapter({family.stock_name(name): tensor for name, tensor in given.items()}, settings)
    for name, tensor in adapter.weights.items():
        if not _STOCK.fullmatch(name):
            problems.append(f"{brief(name, 100)} is of no layer")
        elif not tensor.isfinite().all():
            problems.append(f"{name} is not finite")
    halves = {module + half for module in adapter.modules for half in (_A, _B)}
    problems += [f"{name} is missing" for name in sorted(halves - adapter.weights.keys())]
    if not changes_base and not any(tensor.any() for name, tensor in adapter.weights.items() if not name.endswith(_A)):
        problems.append("it changes nothing: every lora_B is zero")
    if problems:
        raise InputError(place, listed(problems, 8), f"Give a trained LoRA adapter of {family.name}, saved by PEFT.")
    for key in {"rank_pattern", "alpha_pattern"} & settings.keys():  # written for the names that the tensors have there
        patterns, settings[key] = settings[key], {}
        for module in sorted(name.removesuffix(_A) for name in given if name.endswith(_A)):
            if (pattern := get_pattern_key([*patterns], module)) in patterns:
                settings[key][family.stock_name(module)] = patterns[pattern]
    return adapter


# --- Attached and merged by PEFT.


def inject(model: Decoder, settings: JsonObject, modules: list[str]) -> PeftModel:
    """Put PEFT's layers around ``modules`` of ``model``: A and B as they start, in float32, or empty on ``meta``."""
    from peft import LoraConfig, PeftModel

    config = LoraConfig(**settings, target_modules=modules)
    return PeftModel(model, config, low_cpu_mem_usage=model.device.type == "meta")


def attach(model: Decoder, adapter: Adapter, place: object, merge: bool = False) -> None:
    """Put an adapter beside the weights of ``model`` in float32, or ``merge`` it, which rounds once to their dtype.

    On ``meta`` nothing is computed: what PEFT and torch find wrong there is an InputError that lists it.
    """
    from peft import set_peft_model_state_dict

    weights = {name: tensor.to(model.device) for name, tensor in adapter.weights.items()}
    if any(name.startswith(("lm_head.", "model.embed_tokens.")) for name in weights):
        model.untie()
    try:
        adapted = inject(model, adapter.settings, adapter.modules)
        loaded: Any = set_peft_model_state_dict(model, weights)
        problems = [f"{name} is of no layer" for name in loaded.unexpected_keys]
        problems += [f"{name} is missing" for name in loaded.missing_keys if ".lora_" in name]
        if merge:
            adapted.merge_and_unload()
    except (RuntimeError, ValueError) as error:  # torch has a line for each tensor of another shape
        if model.device.type != "meta":
            raise
        problems = [line.strip(" \t.") for line in str(error).splitlines()]
    if problems:
        remedy = "Give a LoRA adapter of this backbone; if it cannot be merged, `merge_adapter: false` (`merge=False`)."
        raise InputError(place, listed(problems, 8), remedy)


# --- Folders in PEFT's layout.


def read_adapter(folder: Path, family: Family) -> Adapter:
    """Read a PEFT folder whose modules have the family's stock or released names.

    Raises InputError as :func:`from_peft` does, and where ``adapter.json`` has the digest of other tensors.
    """
    checkpoint.require_safetensors([path.name for path in folder.glob("*")], folder)
    with checkpoint.open_shard(files.regular(folder / WEIGHTS)) as shard:
        weights = {name: shard.get_tensor(name) for name in shard.keys()}  # noqa: SIM118 - not a mapping
    adapter = from_peft(weights, read_object(folder / SETTINGS), family, folder)
    recorded = read_facts(folder).get("adapter_digest")
    if recorded and recorded != adapter.digest:
        problem = f"its tensors have the digest {adapter.digest}, but {FACTS} says {recorded}"
        remedy = "Remove the folder and train again; for an adapter of your own, remove its adapter.json."
        raise InputError(folder / WEIGHTS, problem, remedy)
    return adapter


def write_adapter(
    adapter: Adapter, folder: Path, family: Family | None = None, facts: JsonObject | None = None
) -> None:
    """Write a PEFT folder in the released names of ``family``; without a family in stock names, our own layout.

    Modules are full paths: in LLaDA both the LM head and the FFN output are called ``ff_out``. ``facts`` go into
    ``adapter.json``, with the digest and the number of the tensors.
    """
    named = family.released_name if family else str
    settings = {**adapter.settings, "inference_mode": True}
    settings["target_modules"] = sorted(map(named, adapter.modules))
    for key in {"rank_pattern", "alpha_pattern"} & settings.keys():
        settings[key] = {named(module): value for module, value in settings[key].items()}
    weights = {_PREFIX + named(name): tensor for name, tensor in adapter.weights.items()}
    checkpoint.write_tensors(weights, folder / WEIGHTS)
    files.write_json(folder / SETTINGS, settings)
    if facts:
        count = sum(tensor.numel() for tensor in adapter.weights.values())
        files.write_json(folder / FACTS, {**facts, "adapter_digest": adapter.digest, "trainable_parameters": count})


class Spec(Foreign):
    """The params of an adapter's training."""

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


def read_facts(folder: Path) -> JsonObject:
    """The content of ``adapter.json``; {} without one."""
    return read_object(folder / FACTS, Facts) if (folder / FACTS).exists() else {}


def require_same(folder: Path, backbone_digest: str, attention: str = BOTH_WAYS) -> None:
    """Raise InputError if ``adapter.json`` says that it was trained on another backbone, or with another attention."""
    facts = read_facts(folder)
    digest = facts.get("backbone_digest", backbone_digest)
    trained = attention_of(facts.get("spec", {"attention": attention}))
    if (digest, trained) != (backbone_digest, attention):
        problem = f"trained on backbone {digest} with attention {trained}, not on {backbone_digest} with {attention}"
        raise InputError(folder, problem, "Use what it was trained with, or train again.")


def export(folder: Path, out: Path, layout: str = "released", family: str | None = None) -> None:
    """Write the adapter in ``folder`` to the new folder ``out``, in ``released`` or ``stock`` names.

    ``family`` is needed only if no ``adapter.json`` names it; that file is copied. Raises InputError for an unknown
    family, an unreadable adapter, and an existing ``out``.
    """
    if out.exists():
        raise InputError(out, "exists already", "Name a new folder.")
    facts = read_facts(folder)
    if not (name := family or facts.get("family")):
        raise InputError(folder, f"no {FACTS} names its family", "Name it by --family.")
    kind = find_family(name, None if family else folder / FACTS)
    with files.atomic_folder(out) as new:
        write_adapter(read_adapter(folder, kind), new, kind if layout == "released" else None, facts)

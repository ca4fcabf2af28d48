"""A LoRA adapter and its format in PEFT: tensor names and ``adapter_config.json``."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.backbone.families import Family
from entropy_valley.errors import InputError, listed

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_PREFIX = "base_model.model."
_MATRIX = re.compile(rf"(?:{re.escape(_PREFIX)})*(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")
_PEFT_DEFAULT = 8  # of both `r` and `lora_alpha`

# Settings of training and origin, and the settings that are read here.
_HARMLESS = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version", "revision", "runtime_config"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "task_type"),
    *("eva_config", "lora_dropout", "megatron_core", "qalora_group_size"),
    *("alpha_pattern", "lora_alpha", "r", "rank_pattern", "use_rslora"),
}
# Other ways to initialise (PiSSA, OLoRA, LoftQ, …) change the backbone's own weights.
_PLAIN = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, "gaussian", "eva", "orthogonal")}


@dataclass(frozen=True)
class Adapter:
    """Changes W + scaling · B A of a stock model's linear layers.

    ``pairs`` holds A (rank, in) and B (out, rank) by stock module name, float32 on the CPU; ``alphas`` holds each
    module's alpha. The scaling is alpha / rank (Hu et al., 2022), or alpha / √rank with ``rslora`` (Kalajdzievski,
    2023). ``dropout`` was used in training; ``base`` is the backbone's repository or path, None if unknown.
    """

    pairs: Mapping[str, tuple[Tensor, Tensor]]
    alphas: Mapping[str, float]
    rslora: bool = False
    dropout: float = 0.0
    base: str | None = None

    def rank(self, module: str) -> int:
        return self.pairs[module][0].shape[0]

    def scaling(self, module: str) -> float:
        return self.alphas[module] / (math.sqrt(self.rank(module)) if self.rslora else self.rank(module))

    @property
    def parameters(self) -> int:
        return sum(down.numel() + up.numel() for down, up in self.pairs.values())

    @property
    def digest(self) -> str:
        """A digest of names, scalings, shapes and float32 values; it does not depend on the file's layout."""
        return files.digest(
            [
                (module, self.scaling(module), [(list(tensor.shape), _bytes_digest(tensor)) for tensor in pair])
                for module, pair in sorted(self.pairs.items())
            ]
        )


def from_peft(
    weights: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    family: Family,
    model: Module | None = None,
    *,
    place: object,
) -> Adapter:
    """An adapter from PEFT's tensors and its ``adapter_config.json``.

    Raises InputError for settings and tensors with which PEFT computes something other than W + scaling · B A, and for
    a matrix without its pair or of a wrong shape. With a ``model``, which may be on ``meta``, also for modules that it
    does not have.
    """
    sides, written, extra = _by_module(weights, family)
    pairs = {module: (sides[module]["A"], sides[module]["B"]) for module in sorted(sides) if len(sides[module]) == 2}
    problems = {
        "settings of another function": _other_functions(settings),
        "tensors beside plain LoRA matrices": extra,
        "without its pair": [written[module] for module in sides if len(sides[module]) == 1],
        **_misfits(pairs, written, settings, model),
    }
    said = "; ".join(f"{what}: {listed(names)}" for what, names in problems.items() if names)
    if said or not pairs:
        raise InputError(
            place, said or "no LoRA matrices", f"Give a plain LoRA adapter of {family.name}, saved by PEFT."
        )
    return Adapter(
        {module: (down.float().contiguous(), up.float().contiguous()) for module, (down, up) in pairs.items()},
        {module: _pattern(settings, "alpha", written[module]) for module in pairs},
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
    return tensors, _settings(adapter, names)


def _settings(adapter: Adapter, names: Mapping[str, str]) -> dict[str, Any]:
    """``adapter_config.json`` with module ``names``: the most common rank and alpha, and patterns for the others."""
    ranks = {module: adapter.rank(module) for module in names}
    (rank, _), (alpha, _) = (Counter(values.values()).most_common(1)[0] for values in (ranks, adapter.alphas))
    settings = {
        "peft_type": "LORA",
        "base_model_name_or_path": adapter.base,
        "inference_mode": True,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": adapter.dropout,
        "use_rslora": adapter.rslora,
        "target_modules": sorted(names.values()),
        "rank_pattern": {names[module]: value for module, value in ranks.items() if value != rank},
        "alpha_pattern": {names[module]: value for module, value in adapter.alphas.items() if value != alpha},
    }
    return {key: value for key, value in settings.items() if value}


def _bytes_digest(tensor: Tensor) -> str:
    return hashlib.blake2b(tensor.numpy().tobytes(), digest_size=16).hexdigest()


def _by_module(
    weights: Mapping[str, Tensor], family: Family
) -> tuple[dict[str, dict[str, Tensor]], dict[str, str], list[str]]:
    """Tensors by stock module and side, each module's name in the file, and the names of all other tensors."""
    sides, written, extra = defaultdict(dict), {}, []
    for name, tensor in weights.items():
        match = _MATRIX.fullmatch(name)
        module = family.stock_name(match[1]) if match else name
        if match and match[2] not in sides[module]:
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
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    written: Mapping[str, str],
    settings: Mapping[str, Any],
    model: Module | None,
) -> dict[str, list[str]]:
    """Modules that the model does not have, and pairs that do not fit its weights or the rank in the settings."""
    weights, unknown, misshapen = _linear_weights(model), [], []
    for module, (down, up) in pairs.items():
        rank, weight = _pattern(settings, "rank", written[module]), weights.get(module)
        if model is not None and weight is None:
            unknown.append(written[module])
        elif not _fits(down, up, rank, None if weight is None else weight.shape):
            of = "" if weight is None else f" on a weight {tuple(weight.shape)}"
            misshapen.append(f"{written[module]} has A {tuple(down.shape)}, B {tuple(up.shape)}, rank {rank}{of}")
    return {"no such linear layer": unknown, "of another shape": misshapen}


def _linear_weights(model: Module | None) -> dict[str, Tensor]:
    if model is None:
        return {}
    from torch.nn import Linear

    return {name: module.weight for name, module in model.named_modules() if isinstance(module, Linear)}


def _fits(down: Tensor, up: Tensor, rank: int, shape: tuple[int, int] | None) -> bool:
    if not down.dim() == up.dim() == 2 or rank < 1:
        return False
    outer, inner = shape or (up.shape[0], down.shape[1])
    return (*down.shape, *up.shape) == (rank, inner, outer, rank)


def _pattern(settings: Mapping[str, Any], what: str, module: str) -> Any:
    """The rank or alpha of a module, by PEFT's rule: the first pattern that its name ends with, else the default."""
    common = settings.get({"rank": "r", "alpha": "lora_alpha"}[what], _PEFT_DEFAULT)
    patterns = settings.get(f"{what}_pattern") or {}
    return next((value for key, value in patterns.items() if re.fullmatch(rf"(.*\.)?({key})", module)), common)

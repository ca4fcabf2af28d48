"""What is checked: the device, and the shapes and sizes of the config's backbones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entropy_valley.config import Experiment
from entropy_valley.config.matrix import all_cells
from entropy_valley.config.paths import backbone_folder, checkpoint_of
from entropy_valley.demo.settings import SHAPE, stock_config
from entropy_valley.model.checkpoint import config_arguments
from entropy_valley.model.families import find_family
from entropy_valley.translation.job import padded_tokens

_OF_TRAINING = {"precision", "global_batch", "micro_tokens", "activation_checkpointing", "max_tokens", "lora"}
_OF_DECODING = {"precision", "batch_invariant", "compile_layers"}
BYTES = {"float32": 4, "bfloat16": 2}
RELEASED = BYTES["bfloat16"]  # of a released weight
HEAD_ROWS = 1024  # whose logits a GPU holds at once: decoding/head.py
UNKNOWN_CONTEXT = 131072  # of a release whose config leaves it out: no weight or product depends on it
_LOGIT_BYTES = 16  # of a logit: in bfloat16, in float32, its exp, and one of the two in float64


@dataclass(frozen=True)
class Size:
    """A backbone's dimensions; ``embedded`` are the parameters of the embeddings."""

    width: int
    ffn: int
    layers: int
    vocabulary: int
    heads: int
    kv_heads: int

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Size:
        """From the arguments of a stock config class."""
        names = ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size", "num_attention_heads")
        return cls(*(arguments[name] for name in (*names, "num_key_value_heads")))

    @property
    def layer(self) -> int:
        """Weights of a layer's products."""
        keys = self.width * self.kv_heads // self.heads
        return 2 * self.width * (self.width + keys) + 3 * self.width * self.ffn

    @property
    def parameters(self) -> int:
        """All weights but norms and biases, which are less than a thousandth."""
        return self.layers * self.layer + 2 * self.width * self.vocabulary

    def adapter(self, rank: int) -> int:
        """Parameters of LoRA on the seven matrices of each layer: rank × (in + out) of each."""
        keys = self.width * self.kv_heads // self.heads
        return rank * self.layers * (4 * self.width + 2 * (self.width + keys) + 3 * (self.width + self.ffn))

    def pass_bytes(self, tokens: int, item: int, rows: int = HEAD_ROWS) -> int:
        """At most what a decoding pass holds beside the weights: a layer's states, or the logits of so many ``rows``.

        Compared with what a pass really holds in tests/decoding/test_memory.py.
        """
        layer = tokens * (3 * self.ffn + 6 * self.width) * item
        head = min(rows, tokens) * self.vocabulary * _LOGIT_BYTES + 2 * tokens * self.width * item
        return max(layer, head)

    def pass_work(self, tokens: float, rows: float) -> float:
        """Additions and multiplications of the weights' products in passes over so many tokens, ``rows`` of them read;
        the last layer makes keys and values of the other rows alone."""
        keys = 2 * self.width * self.width * self.kv_heads // self.heads
        last = tokens * keys + rows * (self.layer - keys)
        return 2.0 * (tokens * (self.layers - 1) * self.layer + last + rows * self.width * self.vocabulary)

    def step_work(self, tokens: float, predicted: float, recomputed: bool) -> float:
        """The same of a training step: the frozen weights take part in the forward pass and in the gradient of its
        input; with activation checkpointing twice in the former."""
        return (3 if recomputed else 2) * self.pass_work(tokens, predicted)


@dataclass(frozen=True)
class Subject:
    """``backbones`` by name, those of the matrix: ``family``, ``folder`` and, where known, the config's ``arguments``.

    ``training``: those settings of :class:`training.settings.Training` that memory and time depend on; empty where
    nothing is trained. ``processes``: how many processes, one a GPU, a training has. ``precision``, ``batch_invariant``
    and ``compile_layers`` are those of decoding. ``thorough``: on whole models, where two layers may stand for all.
    """

    device: str = "cpu"
    processes: int = 1
    precision: str = "float32"
    batch_invariant: bool | str = "auto"
    compile_layers: bool = False
    backbones: dict[str, dict[str, Any]] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    thorough: bool = False

    @property
    def fill(self) -> int | None:
        """Tokens of each pass of its jobs, if they pad passes; None: they pad none."""
        return padded_tokens({"batch_invariant": self.batch_invariant}, self.device, None)


def of(experiment: Experiment) -> dict[str, Any]:
    """The params of the rule ``check``: the fields of :class:`Subject`, as JSON has them."""
    trained = experiment.adapters == "trained"
    names = dict.fromkeys(checkpoint_of(experiment, cell.run.backbone) for cell in all_cells(experiment))
    return {
        "device": experiment.device,
        "processes": experiment.training.processes if trained else 1,
        **experiment.decoding.model_dump(mode="json", include=_OF_DECODING),
        "backbones": {name: backbone(experiment, name) for name in names},
        "training": experiment.training.model_dump(mode="json", include=_OF_TRAINING) if trained else {},
    }


def backbone(experiment: Experiment, name: str) -> dict[str, Any]:
    """A backbone as :class:`Subject` has it."""
    section = experiment.backbones[name]
    release = section.hub and find_family(section.family).release(section.hub.repository)
    shape = release.config if release else None
    if settings := section.pretraining:
        shape = stock_config(**settings.model_dump(include={*SHAPE}))
    return {"family": section.family, "folder": backbone_folder(experiment, name), "arguments": shape}


def is_downloaded(experiment: Experiment, name: str) -> bool:
    """Whether nothing is downloaded for a backbone: it was before, or it is the user's own folder."""
    return bool(experiment.backbones[name].own_folder) or Path(backbone_folder(experiment, name)).is_dir()


def size(experiment: Experiment, name: str, expected: bool = False) -> Size | None:
    """The size of a backbone by its shape; None where that is known only after its download. ``expected``: before its
    download, whether it is there by now or not."""
    origin = checkpoint_of(experiment, name)
    described = backbone(experiment, origin)
    section = experiment.backbones[origin]
    as_configured = section.is_pretrained_here or (expected and not section.own_folder)
    shape = described["arguments"] if as_configured else model_config(described)
    return Size.of(shape) if shape else None


def model_config(backbone: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a backbone's config class: of its folder, else of its release; None: not known yet.

    Raises InputError for a folder whose config is of another family.
    """
    folder = Path(backbone["folder"])
    if (folder / "config.json").is_file():
        return config_arguments(folder, find_family(backbone["family"]))
    fixed = {"tie_word_embeddings": False, "max_position_embeddings": UNKNOWN_CONTEXT}
    return backbone["arguments"] and {**fixed, **backbone["arguments"]}

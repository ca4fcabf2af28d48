"""What is checked: the device, and the sizes of the config's backbones and trainings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entropy_valley.checking.sizes import Size
from entropy_valley.decoding.job import padded_tokens
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.matrix import all_cells
from entropy_valley.experiment.paths import backbone_folder, checkpoint_of
from entropy_valley.model.checkpoint import config_arguments
from entropy_valley.model.families import find_family

_OF_TRAINING = {"precision", "global_batch", "micro_tokens", "activation_checkpointing", "max_tokens", "lora"}

_OF_DECODING = {"precision", "batch_invariant", "compile_layers"}


@dataclass(frozen=True)
class Subject:
    """``backbones`` by name, those of the matrix: ``family``, ``folder`` and, where known, the config's ``arguments``.

    ``training``: those settings of :class:`training.settings.Training` that memory and time depend on; None: nothing is
    trained.
    ``processes``: how many processes, one a GPU, a training has. ``precision``, ``batch_invariant`` and
    ``compile_layers`` are those of decoding.
    """

    device: str = "cpu"
    processes: int = 1
    precision: str = "float32"
    batch_invariant: bool | str = "auto"
    compile_layers: bool = False
    backbones: dict[str, dict[str, Any]] = field(default_factory=dict)
    training: dict[str, Any] | None = None

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
        "processes": processes(experiment),
        **experiment.decoding.model_dump(mode="json", include=_OF_DECODING),
        "backbones": {name: backbone(experiment, name) for name in names},
        "training": experiment.training.model_dump(mode="json", include=_OF_TRAINING) if trained else None,
    }


def processes(experiment: Experiment) -> int:
    """How many GPUs a job takes at most: those of a training; one where nothing is trained."""
    return experiment.training.processes if experiment.adapters == "trained" else 1


def backbone(experiment: Experiment, name: str) -> dict[str, Any]:
    """A backbone as :class:`Subject` has it."""
    section = experiment.backbones[name]
    release = section.hub and find_family(section.family).release(section.hub.repository)
    made = section.pretraining
    known = {
        "hidden_size": made.width,
        "intermediate_size": made.ffn,
        "num_hidden_layers": made.layers,
        "num_attention_heads": made.heads,
        "num_key_value_heads": made.kv_heads,
        "max_position_embeddings": made.context,
        "vocab_size": made.vocabulary,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-5,
    } if made else (release.config if release else None)  # fmt: skip
    return {"family": section.family, "folder": backbone_folder(experiment, name), "arguments": known}


def is_there(experiment: Experiment, name: str) -> bool:
    """Whether nothing is downloaded for a backbone: it was before, or it is the user's own folder."""
    return bool(experiment.backbones[name].folder) or Path(backbone_folder(experiment, name)).is_dir()


def size(experiment: Experiment, name: str) -> Size | None:
    """The size of a backbone by its shape; None where that is known only after its download."""
    origin = checkpoint_of(experiment, name)
    found = arguments(backbone(experiment, origin)) or _to_be_made(experiment, origin)
    return Size.of(found) if found else None


def _to_be_made(experiment: Experiment, name: str) -> dict[str, Any] | None:
    """The arguments of a user's folder that is not there yet, but has the name of a backbone that is pre-trained."""
    section = experiment.backbones[name]
    origin = Path(section.folder or "").name
    made = experiment.backbones.get(origin)
    return backbone(experiment, origin)["arguments"] if made and made.pretraining else None


def arguments(backbone: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a backbone's config class: of its folder, else of its release; None: not known yet.

    Raises InputError for a folder whose config is of another family.
    """
    folder = Path(backbone["folder"])
    if (folder / "config.json").is_file():
        return config_arguments(folder, find_family(backbone["family"]))
    return backbone["arguments"] and {"tie_word_embeddings": False, **backbone["arguments"]}

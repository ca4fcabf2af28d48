"""What is checked: the device, and the shapes and sizes of the config's backbones."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entropy_valley.experiment.checking.size import Size
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.matrix import all_cells
from entropy_valley.experiment.config.paths import backbone_folder, checkpoint_of
from entropy_valley.experiment.demo.settings import SHAPE, stock_config
from entropy_valley.model.checkpoint import config_arguments
from entropy_valley.model.families import find_family
from entropy_valley.translation.job import padded_tokens

_OF_TRAINING = {"precision", "global_batch", "micro_tokens", "activation_checkpointing", "max_tokens", "lora"}
_OF_DECODING = {"precision", "batch_invariant", "compile_layers"}
UNKNOWN_CONTEXT = 131072  # of a release whose config leaves it out: no weight or product depends on it


@dataclass(frozen=True)
class Subject:
    """``backbones`` by name, those of the matrix: ``family``, ``folder`` and, where known, the config's ``arguments``.

    ``training``: those settings of :class:`training.settings.Training` that memory and time depend on; empty where
    nothing is trained. ``processes``: how many processes, one a GPU, a training has. ``precision``, ``batch_invariant``
    and ``compile_layers`` are those of decoding.
    """

    device: str = "cpu"
    processes: int = 1
    precision: str = "float32"
    batch_invariant: bool | str = "auto"
    compile_layers: bool = False
    backbones: dict[str, dict[str, Any]] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

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

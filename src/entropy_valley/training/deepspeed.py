"""The DeepSpeed engine around an adapted model, and the checkpoints that a killed training goes on from."""

import functools
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import torch

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.model.decoder import Decoder
from entropy_valley.settings import JsonObject
from entropy_valley.training.adapter import trainable
from entropy_valley.training.loss import MicroBatch, cross_entropies
from entropy_valley.training.settings import Training, warmup_steps

# --- The engine.

BUCKET = 50_000_000  # gradients, and weights, that are sent to other processes at once


class Objective(torch.nn.Module):
    """An adapted model in the engine's form: from a micro-batch to its share of the batch's loss."""

    def __init__(self, adapted: Decoder, shifted: bool) -> None:
        super().__init__()
        self.adapted, self._shifted = adapted, shifted

    def forward(self, batch: MicroBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The weighted loss and the sum of the unweighted CE, scalars; zero for a micro-batch that predicts nothing."""
        if not len(batch.rows):
            zero = functools.reduce(torch.add, (parameter.sum() for parameter in trainable(self))) * 0.0
            return zero, zero.detach()
        losses = cross_entropies(self.adapted, batch, self._shifted)
        return losses @ batch.weights, losses.detach().sum()


def build(objective: Objective, settings: Training, steps: int) -> Any:
    """A ZeRO-2 engine with AdamW in one parameter group, cosine decay after warm-up, and gradient clipping.

    Gradients and the optimiser's state are divided over the processes.
    """
    import deepspeed
    from transformers import get_cosine_schedule_with_warmup

    # Else, on a CPU, DeepSpeed tries its operators one by one with a compiler, then compiles one for messages between
    # processes, and hangs if an earlier build of it was killed. It asks for no other, and on a GPU for none.
    deepspeed.ops.__compatible_ops__ = {}
    deepspeed.init_distributed(auto_mpi_discovery=False, verbose=False)
    parameters = trainable(objective)
    optimizer = torch.optim.AdamW(
        parameters, lr=settings.learning_rate, betas=settings.betas, weight_decay=settings.weight_decay
    )
    schedule = get_cosine_schedule_with_warmup(optimizer, warmup_steps(settings.warmup, steps), steps)
    # No ``bf16`` key: with it, DeepSpeed would convert the float32 adapters of a bfloat16 model to bfloat16.
    config = {
        "zero_optimization": {
            "stage": 2,
            "overlap_comm": True,
            "reduce_bucket_size": BUCKET,
            "allgather_bucket_size": BUCKET,
        },
        "zero_allow_untested_optimizer": True,
        "train_micro_batch_size_per_gpu": 1,  # required but not used: steps end where the trainer says
        "gradient_clipping": settings.clip,
    }
    return deepspeed.initialize(
        model=objective,
        model_parameters=parameters,
        optimizer=optimizer,
        lr_scheduler=schedule,
        dist_init_required=False,
        config=config,
    )[0]


# --- Its checkpoints.

POINTER = "last.json"  # names the last complete checkpoint in a training's work folder, and the digests of its files


def _load(path: str, map_location: Any = None) -> Any:
    """Read only tensors and numbers, and else raise InputError. DeepSpeed itself would read any pickle, which can run
    any code. Its own files need three of its classes of numbers."""
    from deepspeed.runtime.fp16.loss_scaler import LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address

    def member(kind: Any, name: str) -> Any:
        """A member of an enum: before 3.11.4, Python pickles it as an attribute of its class."""
        if kind is not ZeroStageEnum or name not in [*ZeroStageEnum.__members__]:
            raise pickle.UnpicklingError(f"{name} of {kind}")
        return ZeroStageEnum[name]

    allowed: list[Any] = [LossScaler, ZeroStageEnum, fragment_address, (member, "builtins.getattr")]
    try:
        with torch.serialization.safe_globals(allowed):
            return torch.load(path, map_location=map_location, weights_only=True)
    except pickle.UnpicklingError as error:
        checkpoint = Path(path).parent
        remedy = f"Remove {checkpoint.parent}: the training then starts anew."
        raise InputError(checkpoint, "a file holds more than tensors and numbers", remedy) from error


class Checkpoints:
    """The engine's checkpoints in a work folder, and a pointer to the last complete one, replaced atomically.

    ``key`` identifies the training; a folder with another key is emptied.
    """

    def __init__(self, folder: Path, key: str, rank: int) -> None:
        self._folder, self._key, self._rank = folder, key, rank

    def progress(self) -> JsonObject:
        """That of the last checkpoint; {} if the folder has none of this training."""
        return self._last().get("progress", {})

    def _last(self) -> JsonObject:
        """The content of the pointer; {} if the folder has none of this training."""
        pointer = files.read_json(self._folder / POINTER) if (self._folder / POINTER).exists() else {}
        return pointer if pointer.get("key") == self._key else {}

    def resume(self, engine: Any) -> dict[str, Any]:
        """Load the last checkpoint into the engine; return its progress, or that of a start.

        Raises InputError where its files are not as they were written.
        """
        last = self._last()
        torch.distributed.barrier()
        if not last:
            if self._rank == 0:
                shutil.rmtree(self._folder, ignore_errors=True)
            torch.distributed.barrier()
            return {"step": 0, "seconds": 0.0, "tokens": 0, "history": []}
        checkpoint = self._folder / last["tag"]
        if files.digests(checkpoint.glob("*")) != last["digests"]:
            remedy = f"Remove {self._folder}: the training then starts anew."
            raise InputError(checkpoint, "not as it was written", remedy)
        engine.checkpoint_engine.load = _load
        # Not strict: checkpoints do not hold the frozen weights.
        engine.load_checkpoint(str(self._folder), tag=last["tag"], load_module_strict=False)
        return last["progress"]

    def save(self, engine: Any, progress: dict[str, Any]) -> None:
        """Save the engine; the pointer moves when all ranks have written their files."""
        tag = f"step{progress['step']}"
        with files.saving(self._folder / tag):
            engine.save_checkpoint(str(self._folder), tag=tag, save_latest=False, exclude_frozen_parameters=True)
        torch.distributed.barrier()
        if self._rank == 0:
            paths = [*(self._folder / tag).iterdir()]
            for path in paths:  # else a machine that fails could leave a pointer to files that its disk does not have
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            pointer = {"key": self._key, "tag": tag, "progress": progress, "digests": files.digests(paths)}
            files.write_json(self._folder / POINTER, pointer)
            for old in self._folder.glob("step*"):
                if old.name != tag:
                    shutil.rmtree(old)

"""Put LLaDA-tiny into the package, by `make ship`: a checkpoint, then the adapters that are fine-tuned from it.

python .ci/ship.py checkpoint results/findings/backbones/llada-tiny/seed1
python .ci/ship.py adapters results/demo
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from entropy_valley import files, machine, shipped
from entropy_valley.experiment.demo.pretraining import PretrainingJob, first_losses
from entropy_valley.model import checkpoint

LOSSES = 5  # steps whose losses are kept: tests/demo/test_shipped.py computes them again


def ship_checkpoint(folder: Path) -> None:
    """Copy a checkpoint, its weights in bfloat16, and write down where it comes from."""
    shutil.rmtree(shipped.LLADA_TINY, ignore_errors=True)
    shutil.copytree(folder, shipped.CHECKPOINT, ignore=shutil.ignore_patterns("*.safetensors", ".*", "*.made.json"))
    (weights,) = folder.glob("*.safetensors")
    narrow = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(weights).items()}
    checkpoint.write_tensors(narrow, shipped.CHECKPOINT / weights.name)
    corpora = folder.parents[2] / "corpus"
    spec = checkpoint.read_origin(folder)["spec"]
    paths = {split: {name: corpora / name / f"{split}.jsonl" for name in spec["prompts"]} for split in ("train", "dev")}
    job = PretrainingJob(spec, paths["train"], paths["dev"], folder, folder, folder, checkpoint_every=1)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    origin = {
        "command": "make ship",
        "commit": commit,
        "machine": machine.description(),
        "digest": checkpoint.checkpoint_digest(shipped.CHECKPOINT),
        "first_losses": first_losses(job, LOSSES),
    }
    files.write_json(shipped.ORIGIN, origin)


def ship_adapters(results: Path) -> None:
    """Copy the adapter of seed 1 for each direction."""
    for adapter in sorted(results.glob("*/llada-tiny/seed1/adapter")):
        target = shipped.LLADA_TINY / f"{shipped.ADAPTER}{adapter.parents[2].name}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(adapter, target, ignore=shutil.ignore_patterns(".*", "*.made.json"))


if __name__ == "__main__":
    {"checkpoint": ship_checkpoint, "adapters": ship_adapters}[sys.argv[1]](Path(sys.argv[2]))

"""Put a tiny model into the package, by `make ship`: its checkpoint, then the adapters that are fine-tuned from it.

python .ci/ship.py llada-tiny checkpoint results/findings/backbones/llada-tiny/seed1
python .ci/ship.py llada-tiny adapters results/demo
python .ci/ship.py llada-tiny-human page docs/translate.md    # its translations of a newcomer's sentences, as they come
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

from entropy_valley import Translator, files, machine
from entropy_valley.experiment.demo.pretraining import PretrainingJob, first_losses
from entropy_valley.model import checkpoint
from entropy_valley.shipped import ADAPTER, MODELS, Shipped, newcomer_sentences

NEWCOMER_HEAD = "| English | German | Chinese |\n|---|---|---|\n"
LOSSES = 5  # steps whose losses are kept: tests/demo/test_shipped.py computes them again


def ship_checkpoint(model: Shipped, folder: Path) -> None:
    """Copy a checkpoint, its weights in bfloat16, and write down where it comes from."""
    shutil.rmtree(model.checkpoint, ignore_errors=True)
    shutil.copytree(folder, model.checkpoint, ignore=shutil.ignore_patterns("*.safetensors", ".*", "*.made.json"))
    (weights,) = folder.glob("*.safetensors")
    narrow = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(weights).items()}
    checkpoint.write_tensors(narrow, model.checkpoint / weights.name)
    corpora = folder.parents[2] / "corpus"
    spec = checkpoint.read_origin(folder)["spec"]
    paths = {split: {name: corpora / name / f"{split}.jsonl" for name in spec["prompts"]} for split in ("train", "dev")}
    job = PretrainingJob(spec, paths["train"], paths["dev"], folder, folder, folder, checkpoint_every=1)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    origin = {
        "command": "make ship",
        "commit": commit,
        "machine": machine.description(),
        "digest": checkpoint.checkpoint_digest(model.checkpoint),
        "first_losses": first_losses(job, LOSSES),
    }
    files.write_json(model.folder / "origin.json", origin)


def ship_adapters(model: Shipped, results: Path) -> None:
    """Copy the adapter of seed 1 for each direction."""
    for adapter in sorted(results.glob("*/llada-tiny/seed1/adapter")):
        target = model.folder / f"{ADAPTER}{adapter.parents[2].name}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(adapter, target, ignore=shutil.ignore_patterns(".*", "*.made.json"))


def newcomer_table(model: Shipped, sentences: Sequence[str]) -> list[str]:
    """The lines of the table of a newcomer's sentences, below its head."""
    german, chinese = (Translator.load(**model.arguments(name)).translate(sentences) for name in ("en-de", "en-zh"))
    rows = zip(sentences, german, chinese, strict=True)
    return [f"| {source} | {first.text} | {second.text} |" for source, first, second in rows]


def write_page(model: Shipped, page: Path) -> None:
    """Put the table of translations into a page, below its head."""
    before, head, behind = page.read_text(encoding="utf-8").partition(NEWCOMER_HEAD)
    _, gap, rest = behind.partition("\n\n")
    table = "\n".join(newcomer_table(model, newcomer_sentences("en")))
    page.write_text(before + head + table + gap + rest, encoding="utf-8")


if __name__ == "__main__":
    name, part, path = sys.argv[1:]
    parts = {"checkpoint": ship_checkpoint, "adapters": ship_adapters, "page": write_page}
    parts[part](MODELS[name], Path(path))

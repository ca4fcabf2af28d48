"""A tiny corpus and the ways tests train on it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from entropy_valley.backbone.prompt import Prompt
from entropy_valley.config.training import Loss
from entropy_valley.training import canvases, data

REPOSITORY = Path(__file__).parents[2]
NAMES, VERBS, THINGS = ("Anna", "the cat", "a small dog"), ("sees", "buys"), ("12 houses", "it", "the old red car")
ROWS = [
    {"id": str(number), "source": f"{name} {verb} {thing}", "target": f"{thing} {verb} {name}"[: 9 + 2 * number]}
    for number, (name, verb, thing) in enumerate(itertools.product(NAMES, VERBS, THINGS))
]
TEMPLATE = "De: {src}\n"


def pairs_of(backbone, max_tokens=96):
    return data.tokenise(ROWS, Prompt(TEMPLATE, backbone.tokenizer), backbone.eos_id, max_tokens)


def canvases_of(backbone, *, batch=8, seed=1, parts=1, **loss):
    pairs = pairs_of(backbone)
    order = data.Batches(pairs.lengths, batch, seed)
    return canvases.Canvases(pairs, order, Loss(**loss), backbone.mask_id, seed, parts)


def start(script, spec, *arguments, **paths):
    """Start a workflow script on one thread; its spec as JSON, its paths as flags."""
    flags = [text for name, path in paths.items() for text in (f"--{name.replace('_', '-')}", str(path))]
    return subprocess.Popen(
        [sys.executable, f"workflow/scripts/{script}.py", json.dumps(spec), *flags, *arguments],
        cwd=REPOSITORY,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    _, error = process.communicate(timeout=280)
    assert process.returncode == 0, error


def kill_after(process, path):
    """SIGKILL as soon as a checkpoint is there."""
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()

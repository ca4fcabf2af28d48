"""The jobs of a model on one backbone and test set, run in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from entropy_valley import files
from entropy_valley.backbone.families import FAMILIES
from entropy_valley.store import Store

SCRIPTS = Path(__file__).parents[1] / "workflow" / "scripts"
SELECTORS = {"oracle": {}, "ratio": {"ratios": 1.2, "reserve_eos_slot": True}, "ev": {"ratios": [0.6, 0.8, 1.0, 1.05]}}


class Bench:
    """Runs the jobs on one backbone and test set, each result in a folder of its own."""

    def __init__(self, root, checkpoints, testset, family="llada"):
        self.root, self.testset = root, testset
        self.spec = {
            "revision": 1,
            "family": family,
            "prompt": "Say: {src}\nIn German: ",
            "bos": family in ("diffullama", "llama3"),
            "shifted": FAMILIES[family].shifted,
            "precision": "float32",
            "direction": "en-de",
        }
        self.common = ["--testset", testset, "--backbone", checkpoints / family, "--store", root / "store"]

    def canvas_command(self, method, *more, out="canvas", selector=None):
        spec = {**self.spec, "method": method, "selector": selector or SELECTORS[method]}
        self.canvases = self.root / out / f"{method}.jsonl"
        return [SCRIPTS / "canvas.py", json.dumps(spec), *self.common, "--out", self.canvases, *more]

    def decode_command(self, method, *more, out="decode", steps=8, order="med", **order_settings):
        canvas = ["--canvas", self.root / "canvas" / f"{method}.jsonl"]
        denoising = {"order": order, "order_settings": order_settings, "steps": steps, "schedule": "llada"}
        return self._command("decode", method, out, denoising, canvas, more)

    def generate_command(self, *more, out="generate", beams=4, length_penalty=1.0, max_new_tokens=24, **rare):
        search = {"beams": beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens} | rare
        return self._command("generate", "beam", out, search, more)

    def _command(self, script, name, out, settings, *options):
        self.out, self.info = self.root / out / f"{name}.jsonl", self.root / out / f"{name}.json"
        outputs = ["--out", self.out, "--info", self.info]
        more = [option for part in options for option in part]
        return [SCRIPTS / f"{script}.py", json.dumps(self.spec | settings), *self.common, *outputs, *more]

    def canvas(self, method, *more, **settings):
        run(self.canvas_command(method, *more, **settings))
        return files.read_jsonl(self.canvases)

    def decode(self, method, *more, **settings):
        run(self.decode_command(method, *more, **settings))
        return self.out.read_bytes(), self.info.read_bytes()

    def generate(self, *more, **settings):
        run(self.generate_command(*more, **settings))
        return self.out.read_bytes(), self.info.read_bytes()

    def ledgers(self):
        logs = sorted((self.root / "store" / "runs").glob("*.json"), key=lambda path: path.name.split("-")[-1])
        return [files.read_json(path) for path in logs]


def run(command):
    before = sys.argv
    sys.argv = [str(part) for part in command]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        sys.argv = before


def run_without_torch(command):
    """Run a job in a process of its own, which fails if torch or transformers was imported."""
    program = (
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__'); "
        "sys.exit(bool({'torch', 'transformers'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", program, *map(str, command)], check=True)


@contextlib.contextmanager
def killed_at_the_sixth_result(monkeypatch):
    """A job run in here must die of its sixth result, five being in the store."""
    put, done = Store.put, []

    def die_at_the_sixth(store, key, value):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(key)
        put(store, key, value)

    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="130"):
        patch.setattr(Store, "put", die_at_the_sixth)
        yield


def with_turn_end(family, tokenizer, token):
    """The family as if ``token`` ended the turns of its chats."""
    return dataclasses.replace(family, chat_tokens=(tokenizer.convert_ids_to_tokens(token),))

"""``live.html``: the tiny model of human sentences in one page, which translates what is typed into it, in a browser.

The page gets the model's files as they come with this package: checkpoint, tokenizer and the adapter of each direction.
No run is read. The computation is in ``templates/live``: ``model.js``, ``tokenizer.js``, ``lengths.js`` and
``denoising.js`` are a decoder of their own, which shares nothing with the engine. ``worker.js`` calls them in a thread,
and ``page.js`` draws.
"""

import base64
import gzip
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.experiment.tables import render
from entropy_valley.model import adapters, checkpoint
from entropy_valley.shipped import HUMAN, newcomer_sentences

NAME = "live.html"
PART = 1 << 19  # characters of a packed file, a multiple of four


def write(path: str | Path) -> None:
    (weights,) = checkpoint.shards(HUMAN.checkpoint)
    settings = {
        "digests": digests(),
        "config": files.read_json(HUMAN.checkpoint / "config.json"),
        "directions": [_direction(name) for name in HUMAN.ratios],
    }
    sources = {"tokenizer": HUMAN.checkpoint / checkpoint.WHOLE, "weights": weights}
    sources |= {name: HUMAN.adapter(name) / adapters.WEIGHTS for name in HUMAN.ratios}
    packed = {name: _packed(source) for name, source in sources.items()}
    render.write_page(path, "live", "Entropy-Valley, live", {"settings": settings, "files": packed})


def digests() -> dict[str, str]:
    """The digests of the checkpoint and of each direction's adapter."""
    facts = {name: files.read_json(HUMAN.adapter(name) / adapters.FACTS) for name in HUMAN.ratios}
    return {"checkpoint": HUMAN.origin["digest"], **{name: one["adapter_digest"] for name, one in facts.items()}}


def _direction(name: str) -> dict[str, Any]:
    """A direction's prompt, the ratios of its length methods, the scale of its adapter, and sentences to try."""
    folder = HUMAN.adapter(name)
    settings = files.read_json(folder / adapters.SETTINGS)
    source, target = name.split("-")
    return {
        "name": name,
        "source": source,
        "target": target,
        "prompt": files.read_json(folder / adapters.FACTS)["spec"]["prompt"],
        "ratios": HUMAN.ratios[name],
        "sentences": newcomer_sentences(source),
        "scaling": settings["lora_alpha"] / settings["r"],
    }


def _packed(path: Path) -> list[str]:
    """A file as gzip, in parts of base64 that the page unpacks while it is read; always the same text of one file."""
    text = base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode("ascii")
    return [text[start : start + PART] for start in range(0, len(text), PART)]

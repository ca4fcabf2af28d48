"""`entropy-valley check`: will the config's jobs run here? Each check ends in one line: ok, failed or skipped.

`check --thorough` is the same on whole models in a released shape, and more: see :mod:`.thorough`.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from entropy_valley.checking import checks

if TYPE_CHECKING:
    from entropy_valley.checking.subject import Subject

# Of the thorough check: its steps, the shapes that it knows, each with its family, and repositories of other decoders.
STEPS = ("check", "decoding", "training", "resuming", "probes", "peers")
SHAPES = {"llada-8b": "llada", "dream-7b": "dream", "diffullama-7b": "diffullama", "tiny": "llada"}
PEERS = {"authors": "Entropy-Valley/Entropy-Valley", "llada": "ML-GSAI/LLaDA", "dllm": "ZHZisZZ/dllm"}
PEERS |= {"fast-dllm": "NVlabs/Fast-dLLM"}


def everything(subject: Subject, missing: str = checks.FAILED) -> Iterator[checks.Line]:
    """All that the jobs of a config need of this machine. Without the device, the rest is not tried. ``missing``: the
    state of a check whose package is not installed."""
    device = subject.device
    for line in checks.run([("torch", checks.torch_build), ("GPUs", partial(checks.gpus, device))]):
        yield line
        if line.state == checks.FAILED:
            return
    with tempfile.TemporaryDirectory(prefix="entropy-valley-check-") as folder:
        yield from checks.run(_computations(subject, Path(folder)), missing)


def _computations(subject: Subject, folder: Path) -> Iterator[tuple[str, checks.Check]]:
    from entropy_valley.checking import computations

    if not subject.thorough:  # which has a step for it
        # First: on some clusters a GPU takes one process, and from the next check on that is this one.
        yield "training", partial(computations.training, subject, folder)
    yield "COMET", partial(computations.comet, folder / "comet", subject)
    yield "speed", partial(computations.speed, subject)
    for name, backbone in subject.backbones.items():
        yield f"memory {name}", partial(computations.fits, backbone, subject)
        if reason := computations.not_run(backbone, subject, **computations.TWO_LAYERS):
            yield f"decoding {name}", partial(checks.skip, reason)
            continue
        yield f"float32 {name}", partial(computations.same_texts, backbone, subject)
        if subject.precision == "bfloat16" or subject.thorough:
            yield f"bfloat16 {name}", partial(computations.same_entropies, backbone, subject)
        yield f"company {name}", partial(computations.company, backbone, subject)
        yield f"pass {name}", partial(computations.decoding, backbone, subject)
        if subject.thorough:
            compiled = dataclasses.replace(subject, batch_invariant=True, compile_layers=True)
            yield f"company {name}, compiled", partial(computations.company, backbone, compiled)

"""How long a sentence takes with one method alone: no store, a loaded model, probes and denoising in one stream.

A benchmark: no two runs of it give the same seconds. The clock runs from the prompt's tokens to those of the
translation, choice of the canvas included.
"""

import dataclasses
import datetime
import functools
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

from entropy_valley import files
from entropy_valley.data.sampling import draw
from entropy_valley.decoding.canvas import Ledger
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.requests import Denoising, Runner
from entropy_valley.lengths.base import LengthMethod
from entropy_valley.lengths.length_head import LengthHead, predictions
from entropy_valley.machine import processor
from entropy_valley.settings import JsonObject
from entropy_valley.translation.fits import Fits
from entropy_valley.translation.job import Execution, RunModel
from entropy_valley.translation.sentences import Sentences
from entropy_valley.translation.translations import signature

COUNTS = ("passes", "tokens", "rows", "unused", "foreseen")  # of a ledger, what a timing has


def write(params: JsonObject, execution: Execution, testset: str, out: str) -> None:
    """Time one cell on sentences drawn from a test set, the same for all methods. The file has the :func:`timing` of
    the sentences one at a time (``single``), and of ``batch`` of the params at once (``batched``; None: all), and the
    conditions of both. Only fits of the length method use the run's store."""
    model = RunModel(params, execution)
    with model.store:
        fits, sentences = Fits.of(model, params.get("fits")), model.sentences(testset)
        sentences = sentences.at(draw(sentences.rows, params["sentences"], params["seed"], "keyed_hash"))
        method = fits.method(params["method"], params["settings"])
        denoising = Denoising.of(params)
        head = fits.length_head(method, model.backbone.device)
        places = range(len(sentences.rows))
        device, size = model.backbone.device.type, params.get("batch") or len(places)
        groups = [places[start : start + size] for start in range(0, len(places), size)]
        timed = functools.partial(timing, model, sentences, method, denoising, head)
        measured: JsonObject = {
            "single": timed([[place] for place in places]),
            "batched": timed(groups),
            "sentences": len(places),
            "batch": size,
            "device": torch.cuda.get_device_name() if device == "cuda" else processor()[0],
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "precision": model.precision,
            "token_budget": execution.token_budget or BUDGET[device],
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "signature": {**signature(model, denoising), "data_digest": sentences.data_digest},
        }
        files.write_json(out, measured)
        model.report("latency")
    taken = ", ".join(f"{name} {measured[name]['seconds_per_sentence']:.4f} s" for name in ("single", "batched"))
    sys.stderr.write(f"latency: {taken} a sentence\n")


def timing(
    model: RunModel,
    sentences: Sentences,
    method: LengthMethod,
    denoising: Denoising,
    head: LengthHead | None,
    groups: Sequence[Sequence[int]],
) -> JsonObject:
    """Seconds a sentence: the median over the repeats, and each; a round before them warms up.

    What the engine ran for a sentence is counted as in a :class:`Ledger`: a pass that sentences share is one pass, and
    each right guess of the lookahead saved one. The sentences of a group are decoded together. A length ``head``, for a
    method that asks one, reads the prompts under the clock too.
    """
    backbone, repeats, ledger = model.backbone, model.spec["repeats"], Ledger()
    seen = sentences.seen_by(method)
    engine = Engine(backbone, ledger, model.execution.token_budget, reveals_masks=model.reveals_masks)
    runner = Runner(lambda: engine, ledger)  # without a store: every request is computed

    def run(group: Sequence[int]) -> None:
        here = {place: seen[place] for place in group}
        if head:
            prompts = [sentences.prompts[place] for place in group]
            for place, lengths in predictions(head, engine, prompts):
                here[group[place]] = dataclasses.replace(here[group[place]], predicted=lengths)
        works = ((place, sentences.translating(method, place, one, denoising)) for place, one in here.items())
        deque(runner.run(works, denoising.order), maxlen=0)

    def once() -> float:
        return seconds(lambda: list(map(run, groups)), backbone.device.type) / len(seen)

    once()  # warms up: it also loads and compiles
    ran = {name: ledger[name] / len(seen) for name in COUNTS}
    taken = [once() for _ in range(repeats)]
    return {"seconds_per_sentence": statistics.median(taken), "repeats": taken, **ran}


def seconds(task: Callable[[], object], device: str) -> float:
    """Wall-clock seconds of a task, its kernels included."""
    synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None
    synchronise()
    start = time.perf_counter()
    task()
    synchronise()
    return time.perf_counter() - start

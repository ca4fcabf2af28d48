"""What jobs compute with a model, on one backbone and test set and in this process."""

import contextlib
import dataclasses
import shutil

import pytest

from entropy_valley import files, results
from entropy_valley.decoding.canvas import Canvas, Ledger
from entropy_valley.decoding.orders import reveal_counts
from entropy_valley.decoding.requests import Runner
from entropy_valley.model.families import find_family
from entropy_valley.results import System
from entropy_valley.store import Store
from entropy_valley.translation import diagnostics, latency, translations
from entropy_valley.translation.job import Execution, RunModel
from entropy_valley.translation.sentences import Sentences
from entropy_valley.translation.translations import Translations

LEDGERS = {}  # the counts of this process's jobs, by their store
_report = RunModel.report


def _noted(model, what):
    LEDGERS.setdefault(model.execution.store, []).append(Ledger(model.ledger))
    _report(model, what)


RunModel.report = _noted

METHODS = {"oracle": {}, "ratio": {"ratios": 1.2, "reserve_eos_slot": True}, "ev": {"ratios": [0.6, 0.8, 1.0, 1.05]}}


def canvas_of(prompt, length, steps, **more):
    """``length`` masks behind a prompt, to be denoised in T steps."""
    return Canvas(prompt, length, [count for count in reveal_counts(length, steps) if count], **more)


class Spelled:
    """A prompt that knows the tokens of each source, and takes the spans of an alignment for slots."""

    def __init__(self, tokens):
        self.encode = tokens.__getitem__

    def slots_of(self, text, spans):
        return spans


def in_prompts(prompts, context, sources=None, sourceless=(), anchors=None, **more):
    """Sentences whose prompts have these tokens, named by their numbers."""
    sources = sources or [f"source {number}" for number in range(len(prompts))]
    tokens = dict(zip(sources, prompts, strict=True)) | {"": list(sourceless)}
    rows = [{"id": number, "source": source, "target": ""} for number, source in enumerate(sources)]
    for row, slots in zip(rows, anchors or (), strict=False):
        row["anchors"] = slots
    return Sentences("test", rows, Spelled(tokens), context, **more)


def without_store(engine):
    return Runner(lambda: engine, engine.ledger)


def canvases(runner, sentences, method, seen):
    """The canvas row of each sentence, of which the method has ``seen`` this."""
    works = ((place, sentences.choosing(method, place, one)) for place, one in enumerate(seen))
    return [row for _, (row, _) in sorted(runner.run(works))]


def denoised(runner, sentences, rows, denoising):
    """What is decoded for each canvas row."""
    works = ((place, sentences.denoising(place, row, denoising, {})) for place, row in enumerate(rows))
    return [decoded for _, decoded in sorted(runner.run(works, denoising.order))]


def translated(runner, sentences, method, seen, denoising):
    """The number, the canvas row and what is decoded of each sentence as soon as it is done."""
    works = ((place, sentences.translating(method, place, one, denoising)) for place, one in enumerate(seen))
    return runner.run(works, denoising.order)


class Bench:
    """Runs sets of one cell on one backbone and test set, each result in a folder of its own.

    ``spec`` is what every spec has; ``fits`` are fitted to the test set's pairs, which stand for training pairs. The
    ``execution`` of a method changes how its job runs; ``store=None`` keeps nothing.
    """

    def __init__(self, root, checkpoints, testset, family="llada"):
        self.root, self.testset = root, testset
        self.spec = {
            "revision": 1,
            "family": family,
            "prompt": "Say: {src}\nIn German: ",
            "bos": family in ("diffullama", "llama3"),
            "shifted": find_family(family).shifted,
            "precision": "float32",
            "direction": "en-de",
        }
        self.execution = Execution(checkpoints / family, corpus=root / "corpus", store=root / "store")
        self.fits = {}

    def fit(self, **settings):
        """Have length methods fitted: ``length_statistics`` or ``length_head`` with their settings."""
        self.fits = {name: self.spec | one for name, one in settings.items()}
        self.execution.corpus.mkdir(exist_ok=True)
        for name in ("train.jsonl", "dev.jsonl"):
            shutil.copy(self.testset, self.execution.corpus / name)

    def set_of(self, method, steps=8, order="med", chosen=None, **order_settings):
        """The params of a set with one cell."""
        cell = [self.testset.stem, method, order, steps]
        orders = {order: {"order": order, "order_settings": order_settings}}
        methods = {method: chosen if chosen is not None else METHODS[method]}
        fits = {"fits": self.fits} if self.fits else {}
        return {**self.spec, "cells": [cell], "methods": methods, "orders": orders, "schedule": "llada", **fits}

    def canvas(self, method, chosen=None, **execution):
        """The canvas row of each sentence."""
        spec = self.set_of(method, chosen=chosen)
        work = Translations(spec, dataclasses.replace(self.execution, **execution), [self.testset])
        with work.model.store:
            chosen = work.choose()
            work.model.report("canvas")
        return [canvas for _, canvas in sorted(chosen[self.testset.stem, method].items())]

    def decode(self, method, out="decode", execution=(), chosen=None, **settings):
        """The rows and the header's entry, without the cell's own columns; see also ``out``."""
        return self.write(self.set_of(method, chosen=chosen, **settings), out, execution)

    def generate(self, out="generate", execution=(), beams=4, length_penalty=1.0, max_new_tokens=24, **rare):
        """The same of an autoregressive backbone."""
        search = {"beams": beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens}
        search |= {"early_stopping": True, "first_line": False} | rare
        return self.write({**self.spec, **search, "cells": [[self.testset.stem, "beam", "", 0]]}, out, execution)

    def write(self, spec, out="set", execution=()):
        """Rows and entry of the first cell of a set."""
        self.out = self.root / out / results.TRANSLATIONS
        translations.write(spec, dataclasses.replace(self.execution, **dict(execution)), [self.testset], self.out)
        cell = System(*spec["cells"][0])
        entry = {
            key: value
            for key, value in results.entries(results.record_path(self.out))[cell].items()
            if key not in System._fields
        }
        return results.systems(self.out)[results.system_of(cell)], entry

    def diagnose(self, kind, **settings):
        """What a diagnostic of the test set reads."""
        params = {**self.spec, kind: self.spec | settings, "testsets": {kind: [self.testset.stem]}}
        diagnostics.write(params, self.execution, [self.testset], out := self.root / results.DIAGNOSTICS)
        return files.read_json(out)[kind][self.testset.stem]

    def latency(self, method, execution=(), **settings):
        """How long a cell takes."""
        denoising = {"order": "med", "order_settings": {}, "steps": 8, "schedule": "llada"}
        spec = {**self.spec, **denoising, "method": method, "settings": METHODS[method]}
        spec |= {"sentences": 5, "repeats": 3, "seed": 1, **settings, **({"fits": self.fits} if self.fits else {})}
        latency.write(
            spec,
            dataclasses.replace(self.execution, **dict(execution)),
            self.testset,
            out := self.root / "latency.json",
        )
        return files.read_json(out)

    def ledgers(self):
        """The counts of each job so far."""
        return list(LEDGERS.get(self.root / "store", []))


@contextlib.contextmanager
def killed_at_the_sixth_result(monkeypatch):
    """A job in here must die of its sixth result, five being in the store."""
    put, done = Store.put, []

    def die_at_the_sixth(store, key, value):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(key)
        put(store, key, value)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Store, "put", die_at_the_sixth)
        yield


def with_turn_end(family, tokenizer, token):
    """The family as if ``token`` ended the turns of its chats."""
    return dataclasses.replace(
        family, turn_end=next(name for name, number in tokenizer.get_vocab().items() if number == token)
    )

"""What the jobs of a model share: the store, the ledger, and a model that loads when it must."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import functools
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files
from entropy_valley.backbone.checkpoint import require_same
from entropy_valley.backbone.prompt_attention import PREFIX, attention_of
from entropy_valley.engine.context import Inputs
from entropy_valley.engine.finished import Texts
from entropy_valley.engine.identity import Identity, read_identity
from entropy_valley.engine.invariance import padded_tokens
from entropy_valley.engine.ledger import Ledger
from entropy_valley.engine.loaded import LoadedOnce, float32_head
from entropy_valley.engine.requests import Memo, Runner
from entropy_valley.errors import InputError
from entropy_valley.gpus import device_name
from entropy_valley.progress import progress
from entropy_valley.store import Store

if TYPE_CHECKING:
    from entropy_valley.backbone.loading import Backbone
    from entropy_valley.engine.engine import Engine

# In signatures and keys; what is usual goes unsaid.
UNMERGED, FLOAT32_HEAD, MASKS = "adapter unmerged", "float32 head", "reveals masks"
PREFIX_ATTENTION, COMPILED_LAYERS = "prefix attention", "compiled layers"
ROW = ("id", "source", "target")  # what a row of a test set has
# Of a spec: the model, and how it reads.
_MODEL = (
    *("family", "prompt", "bos", "shifted", "attention"),
    *("precision", "merge_adapter", "head_precision", "batch_invariant", "compile_layers", "mask_token"),
)
Compute = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


class Job:
    """One run of a job: its spec, the test set's rows, the checkpoint's identity, the store and the ledger.

    A job of many parts (``inference``) begins without a test set; its parts are jobs :meth:`on` one each.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._started = options, time.monotonic()
        self.spec: dict[str, Any] = options.spec
        if manifest := getattr(options, "manifest", None):
            require_same(options.backbone, manifest)
        self.attention = attention_of(self.spec)
        named = (self.spec[key] for key in ("family", "prompt", "bos"))
        self.identity = read_identity(options.backbone, options.adapter, *named, self.attention)
        testset: Path | None = getattr(options, "testset", None)
        self._take(files.read_jsonl(testset, ROW) if testset else [], testset)
        self.precision: str = self.spec["precision"]
        self.merge: bool = self.spec.get("merge_adapter", True)
        self.token_budget: int | None = options.token_budget
        self.fill = padded_tokens(self.spec, options.device, options.token_budget)
        self._stored: bool = not getattr(options, "no_store", False)
        from_store: bool = getattr(options, "from_store", False)
        on_gpu = options.device.startswith("cuda")
        device = options.device if from_store else device_name(options.device)
        self.gpu = device if on_gpu else None  # by its model
        self.store = Store(options.store, enabled=self._stored, device=self.gpu)
        # A job that reads the store alone takes what any GPU has computed for it.
        devices = self.store.devices() if from_store and on_gpu else []
        self.model_numerics = self._rounding(device)
        self.numerics, *self.others = [self._rounding(name) + self._engine_modes for name in devices or [device]]
        self.ledger = Ledger()
        self._model = LoadedOnce(options, self.spec, self.ledger)

    def _rounding(self, device: str) -> str:
        """What a value depends on beside the checkpoint: the rows that are read, and how device and torch round."""
        rows = "shifted" if self.spec["shifted"] else "unshifted"
        unmerged = [UNMERGED] if self._options.adapter and not self.merge else []
        torch = f"torch {importlib.metadata.version('torch')}"
        return "|".join([rows, self.precision, device, torch, *unmerged, *self._prefix])

    @property
    def _prefix(self) -> list[str]:
        return [PREFIX_ATTENTION] if self.attention == PREFIX else []

    @property
    def _modes(self) -> list[str]:
        """What is unusual in how canvases are filled."""
        modes = {FLOAT32_HEAD: float32_head(self.spec), MASKS: self.reveals_masks, COMPILED_LAYERS: self.compiles}
        return [mode for mode, has in modes.items() if has]

    @property
    def _engine_modes(self) -> str:
        """How the engine computes, where that is not usual."""
        return "".join(f"|{mode}" for mode in self._modes) + (f"|batch-invariant {self.fill}" if self.fill else "")

    @property
    def reveals_masks(self) -> bool:
        """Whether a slot may be revealed as a mask."""
        return "mask_token" in self.spec

    @property
    def compiles(self) -> bool:
        """Whether the layers of its passes are compiled: only padded passes have one shape."""
        return bool(self.fill) and self.spec.get("compile_layers", False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self.store.__exit__(*failure)

    def on(self, rows: list[dict[str, Any]], testset: Path | None = None) -> Self:
        """The same job on other rows, perhaps of another file; the model is loaded once for both."""
        other = copy.copy(self)
        for loaded in ("backbone", "engine"):
            vars(other).pop(loaded, None)
        other._take(rows, testset or self.testset)
        return other

    def asked(self, spec: dict[str, Any], store: Store | None = None) -> Self:
        """A job with another spec on the same rows and model, and with another store if one is given.

        Raises InputError for the spec of another model.
        """
        for name in _MODEL:
            if spec.get(name) != self.spec.get(name):
                problem = f"{name} is {spec.get(name)!r}, but {self.spec.get(name)!r} in the job's own spec"
                raise InputError("request", problem, "Ask one job for results of one run.")
        other = copy.copy(self)
        other.spec, other.store = spec, self.store if store is None else store
        return other

    @property
    def inputs(self) -> Inputs:
        """The prompts of the rows, which are read at the first use."""
        return self._inputs()

    @functools.cached_property
    def backbone(self) -> Backbone:
        """The model, loaded at its first use: a job with nothing to compute never imports torch."""
        backbone = self._model.backbone
        self._compare_tokenizers(backbone.tokenizer)
        return backbone

    @functools.cached_property
    def engine(self) -> Engine:
        """The exact decoder of canvases, on the model."""
        from entropy_valley.engine.engine import Engine

        modes = self.fill, self.reveals_masks, self.compiles
        return Engine(self.backbone, self.ledger, self.token_budget, *modes)

    def runner(self, bar: str) -> Runner:
        """Work on this job's sentences, through its store; ``bar`` names the results in errors and the progress bar."""
        memo = Memo(self.store, self.identity.digest, self.numerics, self.others)
        return Runner(functools.partial(self._engine, bar), self.ledger, memo, bar)

    def signature(self, *decoder: str) -> dict[str, Any]:
        """What hypotheses depend on beside the data: the decoder, by its parts, the backbone and the adapter."""
        return {
            "decoder": "|".join([*decoder, *[UNMERGED] * (not self.merge), *self._prefix, *self._modes]),
            "backbone_digest": self.identity.backbone_digest,
            "adapter_digest": self.identity.adapter_digest,
            "shifted": self.spec["shifted"],
        }

    def _take(self, rows: list[dict[str, Any]], testset: Path | None) -> None:
        self.rows, self.testset = rows, testset
        self._inputs = functools.cache(functools.partial(_inputs, self.identity, rows, testset))

    def _engine(self, what: str, missing: int) -> Engine:
        self._may_compute(what, missing)
        return self.engine

    def _may_compute(self, what: str, missing: int) -> None:
        """Raise InputError where all results must come from the store."""
        if getattr(self._options, "from_store", False):
            raise InputError(
                self._options.store,
                f"the store lacks {missing} results that {self._options.out} needs ({what})",
                "Run Snakemake again: its rule `inference` computes them. Its log says which it could not compute.",
            )

    def _compare_tokenizers(self, trained_with: Any) -> None:
        """The job reads text through ``tokenizer.json`` alone; what transformers, and so training, makes of it must be
        the same."""
        prompt = dataclasses.replace(self.identity.prompt, tokenizer=trained_with)
        for row in self.rows[:8]:
            if prompt.encode(row["source"]) != self.identity.prompt.encode(row["source"]):
                raise InputError(
                    self._options.backbone,
                    f"tokenizer.json alone reads {row['source']!r} otherwise than transformers does",
                    "Remove tokenizer.json from a copy of the checkpoint, so that both take the slow road.",
                )

    def recall(self, what: str, names: Callable[[str], Sequence[str]], compute: Compute) -> list[Any]:
        """The value of each key: from the store, or computed once and put there as soon as it is finished.

        ``names`` gives all keys, from ``numerics`` or from one of the ``others``. ``compute`` gets the places of the
        missing keys and yields (place, JSON value) in any order.
        """
        keys = names(self.numerics)
        values = self._stored_values(keys, (keys, *map(names, self.others)))
        first_places = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [place for key, place in first_places.items() if key not in values]
        self.ledger.count(asked=len(keys), computed=len(missing))
        if missing:
            self._may_compute(what, len(missing))
            with progress(total=len(missing), description=what, unit="result") as bar:
                for place, value in compute(missing):
                    self.store.put(keys[place], value)
                    values[keys[place]] = value
                    bar.update()
        return [values[key] for key in keys]

    def _stored_values(self, keys: Sequence[str], called: Iterable[Sequence[str]]) -> dict[str, Any]:
        """What the store has of ``keys``, under any of the names in which each is ``called``."""
        values: dict[str, Any] = {}
        for names in called:
            for key, name in zip(keys, names, strict=True):
                if key not in values and (value := self.store.get(name)) is not None:
                    values[key] = value
        return values

    def report(self, what: str) -> None:
        """Say on stderr, and in a file beside the store's shards, what was asked for, shared and computed."""
        seconds = round(time.monotonic() - self._started, 3)
        sys.stderr.write(f"{what}: {self.ledger.text()}; {seconds:.1f} s\n")
        if self._stored:
            entry = {"job": what, "out": str(self._options.out), "seconds": seconds, **self.ledger.to_json()}
            files.write_json(
                self._options.store / "runs" / f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}.json", entry
            )


def _inputs(identity: Identity, rows: Sequence[dict[str, Any]], testset: Path | None) -> Inputs:
    prompt, names = identity.prompt, [row["id"] for row in rows]
    sources = [row["source"] for row in rows]
    prompts = [prompt.encode(source) for source in sources]
    texts = Texts(prompt, identity.turn_end, identity.mask)
    spans = [row.get("anchors") for row in rows]
    aligned = [one and prompt.slots_of(row["target"], one) for row, one in zip(rows, spans, strict=True)]
    return Inputs(testset, names, prompts, prompt.encode(""), identity.context, sources, aligned, texts)

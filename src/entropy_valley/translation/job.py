"""What all jobs of the workflow on a run's model share.

:class:`RunModel` is the model with its spec, its store and its counts. It is loaded at the first miss of the store.
A job with nothing to compute reads no weights; it still takes the seconds in which transformers is imported, for the
tokenizer.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.dataclasses import dataclass

from entropy_valley import files
from entropy_valley.decoding.canvas import CachePolicy, Ledger
from entropy_valley.decoding.requests import Memo, Runner, reveals_masks
from entropy_valley.machine import device_name
from entropy_valley.model.adapters import FACTS, read_adapter, read_facts, require_same
from entropy_valley.model.checkpoint import MANIFEST, Checkpoint
from entropy_valley.model.prompt import PREFIX, Prompt, attention_of, bos_of
from entropy_valley.progress import progress
from entropy_valley.results import Record, made
from entropy_valley.settings import JsonObject
from entropy_valley.store import Store
from entropy_valley.translation.sentences import Sentences

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.model.load import Backbone

UNMERGED = "adapter unmerged"  # in signatures and keys; what is usual goes unsaid
# Tokens of a padded pass, unless a job says otherwise: enough to keep a GPU busy, and few in the nearly empty passes at
# the end of a stream.
TOKENS = {"cpu": 1024, "cuda": 4096}
ROW = ("id", "source", "target")  # what a row of a test set has
PAIRS = ("train.jsonl", "dev.jsonl")  # of a corpus
Compute = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


@dataclass(frozen=True)
class Execution:
    """Where a run's model is, and how a job runs it: what rules hand over beside the spec, their paths as texts.

    ``backbone`` and ``adapter`` are folders; without an adapter it is the bare backbone. ``corpus`` is the
    folder of the run's training pairs, which fits read. ``store`` keeps finished work for later jobs; None: nothing is
    kept. ``threads`` are of a CPU. ``token_budget`` is the most tokens of a forward pass.
    """

    backbone: Path
    adapter: Path | None = None
    corpus: Path | None = None
    store: Path | None = None
    device: str = "cpu"
    threads: int = 1
    token_budget: int | None = None

    @property
    def pairs(self) -> tuple[Path, Path]:
        """The files of training and of development pairs. Raises ValueError where there is no corpus."""
        if self.corpus is None:
            raise ValueError("length methods are fitted to the pairs of a corpus, and there is none")
        train, dev = PAIRS
        return self.corpus / train, self.corpus / dev


class RunModel:
    """The model of a run for one job: its spec, what names it, the store and the ledger.

    Raises InputError for an adapter of another backbone or attention, and for a BOS that the tokenizer has not.
    """

    def __init__(self, spec: JsonObject, execution: Execution) -> None:
        self.spec, self.execution, self._started = spec, execution, time.monotonic()
        self.attention = attention_of(spec)
        self.checkpoint = checkpoint = Checkpoint.read(execution.backbone, spec["family"])
        family, ids, adapter = checkpoint.family, checkpoint.ids, execution.adapter
        self.prompt = Prompt(spec["prompt"], checkpoint.tokenizer, bos_of(spec["bos"], ids.bos))
        self._turn_end = family.turn_end_id(checkpoint.tokenizer)
        self.adapter_digest: str | None = None  # of the bare backbone
        if adapter:
            require_same(adapter, checkpoint.digest, self.attention)
            # No tensor is touched but those of an adapter that has no ``adapter.json``: a merge of shards has none.
            self.adapter_digest = read_facts(adapter).get("adapter_digest") or read_adapter(adapter, family).digest
        self.digest = files.digest([checkpoint.digest, self.adapter_digest])  # one name of both together
        self.shifted: bool = spec["shifted"]
        self.precision: str = spec["precision"]
        self.merge: bool = spec.get("merge_adapter", True)
        self.float32_head = spec.get("head_precision") == "float32"
        # A stock class pads nothing.
        self.fill = None if family.is_stock else padded_tokens(spec, execution.device, execution.token_budget)
        self.reveals_masks = reveals_masks(spec)
        # Only padded passes have one shape.
        self.compiles = bool(self.fill) and spec.get("compile_layers", False)
        self.store = Store(execution.store)
        self.ledger = Ledger()

    @functools.cached_property
    def numerics(self) -> str:
        """What a value depends on beside the checkpoint: the rows that are read, and how device and torch round."""
        parts = ["shifted" if self.shifted else "unshifted", self.precision, device_name(self.execution.device)]
        parts.append(f"torch {importlib.metadata.version('torch')}")
        if self.execution.adapter and not self.merge:
            parts.append(UNMERGED)
        return "|".join([*parts, *self._prefix])

    @property
    def engine_numerics(self) -> str:
        """The same of what the engine computes: its modes, too."""
        padded = [f"batch-invariant {self.fill}"] if self.fill else []
        return "|".join([self.numerics, *self._modes, *padded])

    @property
    def _prefix(self) -> list[str]:
        return ["prefix attention"] if self.attention == PREFIX else []

    @property
    def _modes(self) -> list[str]:
        """What is unusual in how canvases are filled."""
        modes = ["float32 head"] * self.float32_head + ["reveals masks"] * self.reveals_masks
        return modes + ["compiled layers"] * self.compiles

    def signature(self, *decoder: str) -> JsonObject:
        """What hypotheses depend on beside the data: the decoder, by its parts, the backbone and the adapter."""
        return {
            "decoder": "|".join([*decoder, *[UNMERGED] * (not self.merge), *self._prefix, *self._modes]),
            "backbone_digest": self.checkpoint.digest,
            "adapter_digest": self.adapter_digest,
            "shifted": self.shifted,
        }

    @functools.cached_property
    def backbone(self) -> Backbone:
        """The model, loaded at its first use."""
        import torch

        from entropy_valley.model.load import load_backbone

        torch.set_num_threads(self.execution.threads)
        self.ledger.update(loads=1)
        return load_backbone(
            self.checkpoint,
            device=self.execution.device,
            dtype=self.precision,
            adapter=self.execution.adapter,
            merge=self.merge,
            shifted=self.shifted,
            float32_head=self.float32_head,
            attention=self.attention,
        )

    @functools.cached_property
    def engine(self) -> Engine:
        """The exact decoder of canvases, on the model."""
        from entropy_valley.decoding.engine import Engine

        modes = self.fill, self.reveals_masks, self.compiles
        return Engine(self.backbone, self.ledger, self.execution.token_budget, *modes)

    def sentences(self, file: str | Path) -> Sentences:
        """All rows of a file, in the run's prompt."""
        rows, cache, mask = files.read_jsonl(file, ROW), CachePolicy.of(self.spec), self.checkpoint.ids.mask
        return Sentences(Path(file), rows, self.prompt, self.checkpoint.context, cache, self._turn_end, mask)

    def runner(self, bar: str, store: Store | None = None) -> Runner:
        """Work on sentences, through the job's store unless another is given; ``bar`` names the results in errors and
        the progress bar."""
        memo = Memo(self.store if store is None else store, self.digest, self.engine_numerics)
        return Runner(lambda: self.engine, self.ledger, memo, bar)

    def recall(self, what: str, keys: Sequence[str], compute: Compute) -> list[Any]:
        """The value of each key: from the store, or computed once and put there as soon as it is finished.

        ``compute`` gets the places of the missing keys and yields (place, JSON value) in any order.
        """
        values, missing = {}, []
        for place, key in enumerate(keys):
            if key not in values:  # the first of equal keys
                values[key] = self.store.get(key)
                if values[key] is None:
                    missing.append(place)
        self.ledger.update(requested=len(keys), computed=len(missing))
        if missing:
            with progress(total=len(missing), description=what, unit="result") as bar:
                for place, value in compute(missing):
                    self.store.put(keys[place], value)
                    values[keys[place]] = value
                    bar.update()
        return [values[key] for key in keys]

    @contextlib.contextmanager
    def made(
        self, rule: str, params: Any, read: Sequence[str | Path], written: Sequence[str | Path]
    ) -> Iterator[Record]:
        """A job from here on: keep the header of what the block makes of these files, the backbone and the adapter,
        close the store, and say on stderr how much was asked for, shared and computed."""
        backbone, adapter = self.execution.backbone, self.execution.adapter
        folders: dict[str | Path, str | None] = {backbone: self.checkpoint.digest}
        described = [backbone / MANIFEST]
        if adapter:
            folders[adapter] = self.adapter_digest
            described.append(adapter / FACTS)
        inputs = [*read, *filter(Path.is_file, described)]
        with self.store, made(rule, params, inputs, written, folders) as record:
            yield record
            self.report(rule)

    def report(self, what: str) -> None:
        """Say on stderr how much was asked for, shared and computed."""
        sys.stderr.write(f"{what}: {self.ledger.text()}; {time.monotonic() - self._started:.1f} s\n")


def padded_tokens(spec: JsonObject, device: str, budget: int | None) -> int | None:
    """Tokens of each pass of a job that pads them (``decoding.batch_invariant``; ``auto``: on GPUs); None: it pads
    none. ``budget`` is what its command line says."""
    kind, setting = device.partition(":")[0], spec.get("batch_invariant", "auto")
    pads = kind == "cuda" if setting == "auto" else setting
    return (budget or TOKENS[kind]) if pads else None

"""What the jobs of a model share: the store, the ledger, and a model that loads when it must.

Also what a job's spec says of its numbers, for the names of decoders in signatures and for keys of the store: padded
passes, a merged adapter, and the LM head's precision.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib.metadata
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from entropy_valley import files, provenance
from entropy_valley.decoding.orders import reveals_masks
from entropy_valley.decoding.requests import Ledger, Memo, Probe, Reading, Runner, gains
from entropy_valley.errors import InputError
from entropy_valley.machine import device_name
from entropy_valley.model.adapters import FACTS
from entropy_valley.model.checkpoint import MANIFEST
from entropy_valley.model.prompt import PREFIX, attention_of
from entropy_valley.progress import progress
from entropy_valley.provenance import Record
from entropy_valley.store import Store
from entropy_valley.translation.inputs import Identity, Inputs, Texts, read_identity

if TYPE_CHECKING:
    from entropy_valley.decoding.engine import Engine
    from entropy_valley.model.load import Backbone


# In signatures and keys; what is usual goes unsaid.
UNMERGED, FLOAT32_HEAD, MASKS = "adapter unmerged", "float32 head", "reveals masks"
PREFIX_ATTENTION, COMPILED_LAYERS = "prefix attention", "compiled layers"
# Tokens of a padded pass, unless a job says otherwise: enough to keep a GPU busy, and few in the nearly empty passes at
# the end of a stream.
TOKENS = {"cpu": 1024, "cuda": 4096}
ROW = ("id", "source", "target")  # what a row of a test set has
Compute = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


@dataclass(frozen=True)
class How:
    """Where a run's model is, and how a job runs it: what rules hand over beside the spec.

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

    @classmethod
    def of(cls, values: Mapping[str, Any], threads: int = 1) -> Self:
        """From a rule's ``how``, whose paths are texts and which may have more."""
        folders = ("backbone", "adapter", "corpus", "store")
        paths = {name: Path(values[name]) for name in folders if values.get(name)}
        return cls(**paths, device=values["device"], threads=threads)


class ModelJob:
    """One job on a run's model: its spec, a test set's rows, the checkpoint's identity, the store and the ledger.

    A job of several test sets is :meth:`on` each of them in turn; the model is loaded once for all.
    """

    def __init__(self, spec: Mapping[str, Any], how: How, testset: Path | None = None) -> None:
        self.spec, self.how, self._started = spec, how, time.monotonic()
        self.attention = attention_of(spec)
        named = (spec[key] for key in ("family", "prompt", "bos"))
        self.identity = read_identity(how.backbone, how.adapter, *named, self.attention)
        self._take(files.read_jsonl(testset, ROW) if testset else [], testset)
        self.precision: str = spec["precision"]
        self.merge: bool = spec.get("merge_adapter", True)
        self.fill = padded_tokens(spec, how.device, how.token_budget)
        self.store = Store(how.store)
        self.ledger = Ledger()
        self._model = LoadedOnce(how, spec, self.ledger)

    @functools.cached_property
    def model_numerics(self) -> str:
        """What a value depends on beside the checkpoint: the rows that are read, and how device and torch round."""
        rows = "shifted" if self.spec["shifted"] else "unshifted"
        unmerged = [UNMERGED] if self.how.adapter and not self.merge else []
        torch = f"torch {importlib.metadata.version('torch')}"
        return "|".join([rows, self.precision, device_name(self.how.device), torch, *unmerged, *self._prefix])

    @property
    def numerics(self) -> str:
        """The same of what the engine computes: its modes, too."""
        return self.model_numerics + self._engine_modes

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
        return reveals_masks(self.spec)

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

    def with_spec(self, spec: Mapping[str, Any], store: Store | None = None) -> Self:
        """A job with another spec on the same rows and model, and with another store if one is given."""
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
        from entropy_valley.decoding.engine import Engine

        modes = self.fill, self.reveals_masks, self.compiles
        return Engine(self.backbone, self.ledger, self.how.token_budget, *modes)

    def runner(self, bar: str) -> Runner:
        """Work on this job's sentences, through its store; ``bar`` names the results in errors and the progress bar."""
        memo = Memo(self.store, self.identity.digest, self.numerics)
        return Runner(lambda: self.engine, self.ledger, memo, bar)

    def probe(self, canvases: Sequence[tuple[int, int]]) -> list[Reading]:
        """The reading of each all-mask canvas, named by (row of the test set, slots); the model is loaded at a miss.

        Raises InputError if a canvas exceeds the context.
        """
        return self.runner("probe").answers(self._probes(canvases))

    def slot_sigs(self, canvases: Sequence[tuple[int, int]], sig: str) -> list[tuple[float, ...]]:
        """The SIG of each slot (nats) of each of these canvases, of the kind that an order's ``sig`` names: one probe
        with a ``stepwise_kl``, or two, the second behind the sentence's distractor."""
        runner = self.runner("sig")
        if sig == "stepwise_kl":
            return [reading.sigs for reading in runner.answers(self._probes(canvases, self.inputs.sourceless))]
        pairs = [((place, length), (self.inputs.distractor(place), length)) for place, length in canvases]
        readings = runner.answers(self._probes([canvas for pair in pairs for canvas in pair]))
        return list(map(gains, readings[::2], readings[1::2]))

    def _probes(self, canvases: Sequence[tuple[int, int]], sourceless: Sequence[int] | None = None) -> list[Probe]:
        for place, length in canvases:
            self.inputs.check(place, length)
        return [Probe(self.inputs.prompts[place], length, sourceless) for place, length in canvases]

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

    def _compare_tokenizers(self, trained_with: Any) -> None:
        """The job reads text through ``tokenizer.json`` alone; what transformers, and so training, makes of it must be
        the same."""
        prompt = dataclasses.replace(self.identity.prompt, tokenizer=trained_with)
        for row in self.rows[:8]:
            if prompt.encode(row["source"]) != self.identity.prompt.encode(row["source"]):
                raise InputError(
                    self.how.backbone,
                    f"tokenizer.json alone reads {row['source']!r} otherwise than transformers does",
                    "Remove tokenizer.json from a copy of the checkpoint, so that both take the slow road.",
                )

    def recall(self, what: str, keys: Sequence[str], compute: Compute) -> list[Any]:
        """The value of each key: from the store, or computed once and put there as soon as it is finished.

        ``compute`` gets the places of the missing keys and yields (place, JSON value) in any order.
        """
        values = {key: value for key in dict.fromkeys(keys) if (value := self.store.get(key)) is not None}
        first_places = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [place for key, place in first_places.items() if key not in values]
        self.ledger.count(requested=len(keys), computed=len(missing))
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
        """Keep the record of what the block makes of these files, the backbone and the adapter."""
        folders, described = {self.how.backbone: self.identity.backbone_digest}, [self.how.backbone / MANIFEST]
        if self.how.adapter:
            folders[self.how.adapter] = self.identity.adapter_digest
            described.append(self.how.adapter / FACTS)
        inputs = [*read, *filter(Path.is_file, described)]
        with provenance.made(rule, params, inputs, written, digests=folders) as record:
            yield record
            record.facts["codes"] = sorted({*record.facts["codes"], *self.store.codes})

    def report(self, what: str) -> None:
        """Say on stderr how much was asked for, shared and computed."""
        sys.stderr.write(f"{what}: {self.ledger.text()}; {time.monotonic() - self._started:.1f} s\n")


def _inputs(identity: Identity, rows: Sequence[dict[str, Any]], testset: Path | None) -> Inputs:
    prompt, names = identity.prompt, [row["id"] for row in rows]
    sources = [row["source"] for row in rows]
    prompts = [prompt.encode(source) for source in sources]
    texts = Texts(prompt, identity.turn_end, identity.mask)
    spans = [row.get("anchors") for row in rows]
    aligned = [one and prompt.slots_of(row["target"], one) for row, one in zip(rows, spans, strict=True)]
    return Inputs(testset, names, prompts, prompt.encode(""), identity.context, sources, aligned, texts)


def float32_head(spec: Mapping[str, Any]) -> bool:
    """Whether a spec asks for the LM head's logits in float32 beside a model of a lower precision."""
    return spec.get("head_precision") == "float32"


def load(spec: Mapping[str, Any], backbone: Path, adapter: Path | None, device: str) -> Backbone:
    """The model that a job's spec names, from the folders of its checkpoint and its adapter.

    Raises InputError as :func:`~entropy_valley.model.load.load_backbone` does.
    """
    from entropy_valley.model.load import load_backbone

    return load_backbone(
        backbone,
        spec["family"],
        device=device,
        dtype=spec["precision"],
        adapter=adapter,
        merge=spec.get("merge_adapter", True),
        shifted=spec["shifted"],
        float32_head=float32_head(spec),
        attention=attention_of(spec),
    )


class LoadedOnce:
    """The backbone that a spec names, loaded at its first use."""

    def __init__(self, how: How, spec: Mapping[str, Any], ledger: Ledger) -> None:
        self._how, self._spec, self._ledger = how, spec, ledger

    @functools.cached_property
    def backbone(self) -> Backbone:
        import torch

        torch.set_num_threads(self._how.threads)
        self._ledger.count(loads=1)
        return load(self._spec, self._how.backbone, self._how.adapter, self._how.device)


def is_wanted(setting: bool | str, device: str) -> bool:
    """What ``decoding.batch_invariant`` means on a device; ``auto``: on GPUs."""
    return device.startswith("cuda") if setting == "auto" else bool(setting)


def padded_tokens(spec: dict[str, Any], device: str, budget: int | None) -> int | None:
    """Tokens of each pass of a job that pads them; None: it pads none. ``budget`` is what its command line says."""
    if not is_wanted(spec.get("batch_invariant", "auto"), device):
        return None
    return budget or TOKENS[device.partition(":")[0]]

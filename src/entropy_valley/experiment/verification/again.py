"""Some sentences of each run, decoded once more by :mod:`entropy_valley.decoding.reference` on this machine."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.experiment.verification.folder import Cell, Folder, Report, Row, Unchecked
from entropy_valley.experiment.verification.sets import NO_TESTSET
from entropy_valley.results import TRANSLATIONS

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone

PART = "texts decoded again"
NEAR = 5e-5  # nats between two float32 computations of a mean entropy
NO_CHECKPOINT = Unchecked("the checkpoint is not at hand")
OTHERWISE = Unchecked(
    "a reveal order, a canvas that changes, a prompt cache, or revealed masks that the plain algorithm does not have"
)


def check(folder: Folder, report: Report, count: int, device: str) -> None:
    """Decode ``count`` sentences of each run again. Nothing in the files of a model is executed."""
    from entropy_valley.model.load import load_backbone

    load = functools.lru_cache(maxsize=1)(load_backbone)  # one model at a time in memory
    for cell, row in drawn(folder, report, count):
        with report.reading(PART, cell.header):
            source = folder.testset(cell.direction, cell.system.testset).get(row["id"])
            rank, (checkpoint, adapter) = _rank(cell), folder.model(cell.home)
            if not (rank and source and checkpoint):
                reason = OTHERWISE if not rank else NO_TESTSET if not source else NO_CHECKPOINT
                report.compare(PART, cell.file, f"line {row['line']}, tokens", row["tokens"], reason)
                continue
            params = cell.params
            backbone = load(
                checkpoint, params["family"], device=device, adapter=adapter, dtype=params["precision"],
                merge=params["merge_adapter"], shifted=params["shifted"], attention=params["attention"],
                float32_head=params["head_precision"] == "float32",
            )  # fmt: skip
            _check_sentence(report, backbone, rank, cell, row, source["source"])


def drawn(folder: Folder, report: Report, count: int) -> Iterator[tuple[Cell, Row]]:
    """``count`` sentences of the cells of each run, drawn by a hash of cell and sentence; of canvases alone."""
    every = folder.cells(report, TRANSLATIONS)
    for _, cells in itertools.groupby(every, key=lambda cell: cell.home.rpartition("/")[0]):
        rows = []
        for cell in cells:
            # An autoregressive system denoises nothing.
            if cell.system.order:
                rows += [(cell, row) for row in cell.rows]
        # Nobody can choose which sentences are drawn, and everybody draws the same.
        rows.sort(key=lambda at: files.text_digest(f"{at[0].home} {at[0].system.label} {at[1]['id']}"))
        yield from rows[:count]


def _check_sentence(
    report: Report, backbone: Backbone, rank: Callable[..., Any], cell: Cell, row: Row, source: str
) -> None:
    """Decode a sentence, and read the candidates of EV: the mean entropy of each all-mask canvas without its last slot,
    the EOS's. Texts that differ in a low precision are listed, not counted as different; of each text that differs it
    says by how many nats the model prefers the first other token that it reveals."""
    from entropy_valley.decoding import reference
    from entropy_valley.model.prompt import Prompt

    params, place, length = cell.params, f"line {row['line']}", row["length"]
    prompt = Prompt(params["prompt"], backbone.tokenizer, backbone.bos_id if params["bos"] else None)
    ids = prompt.encode(source)
    # A forged length could take hours or all memory.
    if not 0 < length <= backbone.context - len(ids):
        raise ValueError(f"{length} slots, in {place}")
    stored = [*row["tokens"], backbone.eos_id]  # what follows the EOS is not stored
    canvas, preferred = [backbone.mask_id] * length, ""
    budget = cell.system.steps, params["schedule"]
    for after in reference.denoise(backbone, ids, length, *budget, rank, prompt.encode("")):
        for slot, (before, token, expected) in enumerate(zip(canvas, after, stored, strict=False)):
            if not preferred and before != token != expected:
                logits = reference.slot_logits(backbone, ids, canvas)[slot]
                preferred = f" (preferred by {logits[token] - logits[expected]:.2g} nats)"
        canvas = after
    # A text ends before the first EOS, a chat's text with its turn, too.
    ends = {backbone.eos_id, backbone.family.turn_end_id(backbone.tokenizer)}
    tokens: Any = list(itertools.takewhile(lambda token: token not in ends, canvas))
    is_exact = params["precision"] == "float32"
    rounded = f"another result in {params['precision']}, whose last digits depend on the machine"
    named = f"{place}, tokens{preferred}"
    if tokens != row["tokens"] and not is_exact:
        # The fewer nats, the likelier it is rounding.
        tokens = Unchecked(f"{rounded}: {cell.file}, {named}")
    report.compare(PART, cell.file, named, row["tokens"], tokens)
    settings = params["methods"][cell.system.method]
    if settings.get("method", cell.system.method) == "ev" and settings.get("score", "mean") == "mean":
        for slots, score in zip(row["canvas"]["candidates"], row["canvas"]["scores"], strict=True):
            entropies, _ = reference.read(backbone, ids, [backbone.mask_id] * slots)
            # EV leaves out the slot of the EOS.
            follows = sum(entropies[:-1]) / (slots - 1) if is_exact else Unchecked(rounded)
            named = f"{place}, entropy of {slots} slots"
            report.compare("EV's entropies, read again", cell.file, named, score, follows, NEAR)


def _rank(cell: Cell) -> Callable[..., Any] | None:
    """The reveal order as the reference has it; None where the reference does not decode as this run."""
    from entropy_valley.decoding.reference import RANKS

    denoising = cell.denoising
    if denoising is None or denoising.name not in RANKS or denoising.looks_at_distractor or denoising.mask_token:
        return None
    settings = {name: value for name, value in denoising.settings.items() if name != "sig"}
    return functools.partial(RANKS[denoising.name], **settings) if cell.params.get("prompt_cache", 1) == 1 else None

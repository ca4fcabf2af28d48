"""Some sentences of each run, decoded once more by :mod:`entropy_valley.decoding.reference` on this machine."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.experiment.verification.folder import Cell, Folder, Report, Row, Unchecked
from entropy_valley.experiment.verification.sets import NO_TESTSET
from entropy_valley.results import TRANSLATIONS

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone

PART = "texts decoded again"
NEAR = 5e-5  # nats between two float32 computations of a mean entropy
MODEL = {"dtype": "precision", "merge": "merge_adapter", "shifted": "shifted", "attention": "attention"}  # and params
NO_CHECKPOINT = Unchecked("the checkpoint is not at hand")
OTHERWISE = Unchecked(
    "a reveal order, a canvas that changes, a prompt cache, or revealed masks that the plain algorithm does not have"
)


def usable(device: str | None) -> str:
    """The device, a GPU where there is one unless it is named. InputError for one that is not there."""
    import torch

    from entropy_valley.model.load import require_device

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require_device(device, "--device cpu")
    return device


def check(folder: Folder, report: Report, count: int, device: str) -> None:
    """Decode ``count`` sentences of each run again. Nothing in the files of a model is executed."""
    from entropy_valley.model.load import load_backbone

    load = functools.lru_cache(maxsize=1)(load_backbone)  # one model at a time in memory
    for cell, row in drawn(folder, report, count):
        with report.reading(PART, cell.header):
            source = folder.testset(cell.run[0], cell.system.testset).get(row["id"])
            rank, (checkpoint, adapter) = _rank(cell), folder.model(cell.home)
            if rank and source and checkpoint:
                settings = {argument: cell.params[name] for argument, name in MODEL.items()}
                settings["float32_head"] = cell.params["head_precision"] == "float32"
                backbone = load(checkpoint, cell.params["family"], device=device, adapter=adapter, **settings)
                _check_sentence(report, backbone, rank, cell, row, source["source"])
            else:
                reason = OTHERWISE if not rank else NO_TESTSET if not source else NO_CHECKPOINT
                report.compare(PART, cell.file, f"line {row['line']}, tokens", row["tokens"], reason)


def drawn(folder: Folder, report: Report, count: int) -> Iterator[tuple[Cell, Row]]:
    """So many sentences of the cells of each run, drawn by a hash of cell and sentence; of canvases alone."""
    runs: dict[tuple[str, ...], list[tuple[Cell, Row]]] = {}
    for cell in (cell for home in folder.sets for cell in folder.cells(report, home, TRANSLATIONS)):
        # An autoregressive system denoises nothing.
        if cell.system.order:
            runs.setdefault(cell.run, []).extend((cell, row) for row in cell.rows)
    for of_run in runs.values():
        # Nobody can choose which sentences are drawn, and everybody draws the same.
        of_run.sort(key=lambda at: files.text_digest(f"{at[0].home} {at[0].system.label} {at[1]['id']}"))
        yield from of_run[:count]


def _check_sentence(
    report: Report, backbone: Backbone, rank: Callable[..., Any], cell: Cell, row: Row, source: str
) -> None:
    """Decode a sentence, and read the candidates of EV: the mean entropy of each all-mask canvas without its last slot,
    the EOS's. Texts that differ in a low precision are noted, not counted as different."""
    from entropy_valley.decoding import reference
    from entropy_valley.model.prompt import Prompt

    params, place, length = cell.params, f"line {row['line']}", row["length"]
    prompt = Prompt(params["prompt"], backbone.tokenizer, backbone.bos_id if params["bos"] else None)
    ids = prompt.encode(source)
    # A forged length could take hours or all memory.
    if not 0 < length <= backbone.context - len(ids):
        raise ValueError(f"{length} slots, in {place}")
    is_exact = params["precision"] == "float32"
    rounded = Unchecked(f"another result in {params['precision']}, whose last digits depend on the machine")
    tokens, margin = _decoded(backbone, rank, cell, row["tokens"], length, ids, prompt.encode(""))
    follows: Any = tokens
    named = f"{place}, tokens" if margin is None else f"{place}, tokens (preferred by {margin:.2g} nats)"
    if tokens != row["tokens"] and not is_exact:
        report.margins[f"{cell.file}: {named}"] = math.nan if margin is None else margin
        follows = rounded
    report.compare(PART, cell.file, named, row["tokens"], follows)
    settings = params["methods"][cell.system.method]
    if settings.get("method", cell.system.method) == "ev" and settings.get("score", "mean") == "mean":
        for slots, score in zip(row["canvas"]["candidates"], row["canvas"]["scores"], strict=True):
            entropies, _ = reference.read(backbone, ids, [backbone.mask_id] * slots)
            # EV leaves out the slot of the EOS.
            follows = sum(entropies[:-1]) / (slots - 1) if is_exact else rounded
            named = f"{place}, entropy of {slots} slots"
            report.compare("EV's entropies, read again", cell.file, named, score, follows, NEAR)


def _decoded(
    backbone: Backbone, rank: Callable[..., Any], cell: Cell, stored: Sequence[int], length: int, ids: Any, other: Any
) -> tuple[list[int], float | None]:
    """The tokens of a sentence; and, where they are others than the ``stored`` ones, by how many nats the model prefers
    the first that it reveals."""
    from entropy_valley.decoding import reference

    logits: Any = None

    def noted(step: Any) -> Any:
        nonlocal logits
        logits = step.logits
        return rank(step)

    expected = dict(enumerate([*stored, backbone.eos_id]))  # what follows the EOS is not stored
    canvas, margin = [backbone.mask_id] * length, None
    for after in reference.denoise(backbone, ids, length, cell.system.steps, cell.params["schedule"], noted, other):
        for slot, token in expected.items():
            is_revealed = slot < length and canvas[slot] != after[slot]
            if margin is None and is_revealed and after[slot] != token:
                margin = float(logits[slot, after[slot]] - logits[slot, token])
        canvas = after
    # A text ends before the first EOS, a chat's text with its turn, too.
    ends = {backbone.eos_id, backbone.tokenizer.get_vocab().get(backbone.family.turn_end)}
    return list(itertools.takewhile(lambda token: token not in ends, canvas)), margin


def _rank(cell: Cell) -> Callable[..., Any] | None:
    """The reveal order as the reference has it; None where the reference does not decode as this run."""
    from entropy_valley.decoding.reference import RANKS

    denoising = cell.denoising
    if denoising is None or denoising.name not in RANKS or denoising.looks_at_distractor or denoising.mask_token:
        return None
    settings = {name: value for name, value in denoising.settings.items() if name != "sig"}
    return functools.partial(RANKS[denoising.name], **settings) if cell.params.get("prompt_cache", 1) == 1 else None

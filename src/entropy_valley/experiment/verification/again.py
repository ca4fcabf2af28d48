"""Some sentences of each run, decoded once more by :mod:`entropy_valley.decoding.reference` on this machine."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.experiment.verification.folder import Cell, Folder, Report, Row, Unchecked
from entropy_valley.experiment.verification.sets import NO_TESTSET, ONE_PASS_A_STEP
from entropy_valley.results import TRANSLATIONS, System

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone

PART = "texts decoded again"
NEAR = 5e-5  # nats between two float32 computations of a mean entropy
MOST_STEPS = 10_000
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
            rank, (checkpoint, adapter) = _rank(cell.params, cell.system), folder.model(cell.home)
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
    for cell in folder.cells(report, TRANSLATIONS):
        if cell.system.order:  # an autoregressive system denoises nothing
            runs.setdefault(cell.run, []).extend((cell, row) for row in cell.rows)
    for of_run in runs.values():
        # Nobody can choose which sentences are drawn, and everybody draws the same.
        of_run.sort(key=lambda at: files.text_digest(f"{at[0].home} {at[0].system.label} {at[1]['id']}"))
        yield from of_run[:count]


def _check_sentence(
    report: Report, backbone: Backbone, rank: Callable[..., Any], cell: Cell, row: Row, source: str
) -> None:
    """Decode a sentence, and read the candidates of EV: the mean entropy of each all-mask canvas without its last slot,
    the EOS's. What differs in a low precision is noted, with how near the model was to the stored text."""
    from entropy_valley.decoding import reference
    from entropy_valley.model.prompt import Prompt

    params, steps, place, stored = cell.params, cell.system.steps, f"line {row['line']}", row["tokens"]
    prompt = Prompt(params["prompt"], backbone.tokenizer, backbone.bos_id if params["bos"] else None)
    ids, length = prompt.encode(source), row["length"]
    # A forged length could take hours or all memory.
    if not 0 < length <= backbone.context - len(ids) or not 0 < steps <= MOST_STEPS:
        raise ValueError(f"{length} slots in {steps} steps, in {place}")
    denoising = backbone, ids, length, steps, params["schedule"], rank, prompt.encode("")
    _, tokens = reference.decode(*denoising)
    end = backbone.tokenizer.get_vocab().get(backbone.family.turn_end)  # a chat's text ends with its turn, too
    tokens = tokens[: tokens.index(end)] if end in tokens else tokens
    is_exact = params["precision"] == "float32"
    rounded = Unchecked(f"another result in {params['precision']}, whose last digits depend on the machine")
    value: Any = tokens
    margin = ""
    if tokens != stored:
        token, slots = _margins(stored, *denoising)
        margin = f" (preferred by {token:.2g} nats; closest choice of slots before: {slots:.2g})"
        if not is_exact:
            report.margins[f"{cell.file}: {place}{margin}"] = min(token, slots)
            value = rounded
    report.compare(PART, cell.file, f"{place}, tokens{margin}", stored, value)
    settings = params["methods"][cell.system.method]
    if settings.get("method", cell.system.method) == "ev" and settings.get("score", "mean") == "mean":
        for slots, score in zip(row["canvas"]["candidates"], row["canvas"]["scores"], strict=True):
            entropies, _ = reference.read(backbone, ids, [backbone.mask_id] * slots)
            # EV leaves out the slot of the EOS.
            value = sum(entropies[:-1]) / (slots - 1) if is_exact else rounded
            named = f"{place}, entropy of {slots} slots"
            report.compare("EV's entropies, read again", cell.file, named, score, value, NEAR)


def _margins(
    stored: Sequence[int], backbone: Backbone, ids: Any, length: int, steps: int, schedule: str, rank: Any, other: Any
) -> tuple[float, float]:
    """Of the first slot that is revealed as another token than the stored one: by how many nats the reference prefers
    its own. And how close the closest choice of slots before was: the score of the first slot that was not revealed
    less that of the last one that was."""
    from entropy_valley.decoding import reference

    seen: dict[str, Any] = {}

    def noted(step: Any) -> Any:
        seen.update(logits=step.logits, scores=rank(step))
        return seen["scores"]

    expected = dict(enumerate([*stored, backbone.eos_id]))  # what follows the EOS is not stored
    masked, closest = {*range(length)}, math.inf
    # The generator stops after each step, so `seen` is of the step that gave the canvas.
    for canvas in reference.denoise(backbone, ids, length, steps, schedule, noted, other):
        left = {slot for slot in masked if canvas[slot] == backbone.mask_id}
        for slot in masked - left:
            own, other_token = canvas[slot], expected.get(slot, canvas[slot])
            if own != other_token:
                return float(seen["logits"][slot, own] - seen["logits"][slot, other_token]), closest
        if left:
            first, last = min(left, key=seen["scores"].__getitem__), max(masked - left, key=seen["scores"].__getitem__)
            closest = min(closest, float(seen["scores"][first] - seen["scores"][last]))
        masked = left
    return math.nan, math.nan


def _rank(params: Mapping[str, Any], system: System) -> Callable[..., Any] | None:
    """The reveal order as the reference has it; None where the reference does not decode as this run."""
    from entropy_valley.decoding.reference import RANKS

    order = params["orders"][system.order]
    name, settings = order["order"], dict(order["order_settings"])
    # What the engine takes where the config says nothing.
    sig = settings.pop("sig", "stepwise_kl" if name in ONE_PASS_A_STEP else "distractor")
    is_exact = params.get("prompt_cache", 1) == 1 and params.get("mask_token", "never") == "never"
    if name not in RANKS or sig != "stepwise_kl" or not is_exact:
        return None
    return functools.partial(RANKS[name], **settings)

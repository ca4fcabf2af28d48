"""Some sentences of each run, decoded once more by :mod:`entropy_valley.decoding.reference` on this machine."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.decoding.variable_length import VARIABLE_LENGTH
from entropy_valley.results import TRANSLATIONS, System
from entropy_valley.verification.folder import HEADER, Folder, Report, Row, Set, Unchecked
from entropy_valley.verification.sets import NO_TESTSET, ONE_PASS_A_STEP

if TYPE_CHECKING:
    import torch

    from entropy_valley.model.load import Backbone

PART = "texts decoded again"
NEAR = 5e-5  # nats between two float32 computations of a mean entropy
MOST_STEPS = 10_000
MODEL = ("family", "precision", "merge_adapter", "shifted", "head_precision", "attention", "bos", "prompt")


def usable(device: str | None) -> str:
    """The device, a GPU where there is one unless it is named. InputError for one that is not there."""
    import torch

    from entropy_valley.model.load import require_device

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require_device(device, "--device cpu")
    return device


def check(folder: Folder, report: Report, count: int, device: str) -> None:
    """Decode ``count`` sentences of each run again."""
    models: dict[str, Backbone | Unchecked] = {}
    for one, system, row in drawn(folder, report, count):
        place = f"{one.home}/{HEADER}"
        with report.reading(PART, folder.root / place, place):
            params = folder.records[place]["params"]
            key = files.digest([one.backbone, one.direction, one.run, *(params[name] for name in MODEL)])
            if key not in models:
                models.clear()  # one at a time in memory
                models[key] = _load(folder, place, device)
            _check_sentence(folder, report, models[key], one, system, row)


def drawn(folder: Folder, report: Report, count: int) -> Iterator[tuple[Set, System, Row]]:
    """So many sentences of the cells of each run, drawn by a hash of cell and sentence; of canvases alone."""
    runs: dict[tuple[str, ...], list[tuple[Set, System, Row]]] = {}
    for one in folder.sets:
        file = f"{one.home}/{TRANSLATIONS}"
        with report.reading(PART, folder.root / file, file):
            for system, rows in folder.rows(file).items():
                if system.order:  # an autoregressive system denoises nothing
                    runs.setdefault(one[1:], []).extend((one, system, row) for row in rows)
    for of_run in runs.values():
        of_run.sort(key=lambda at: files.text_digest(f"{at[0].home} {at[1].label} {at[2].values['id']}"))
        yield from of_run[:count]


def _load(folder: Folder, place: str, device: str) -> Backbone | Unchecked:
    """The model of a run from its checkpoint and adapter, loaded without executing anything in them."""
    from entropy_valley.model.load import load_backbone

    params, paths = folder.records[place]["params"], folder.input_paths(place)
    checkpoint = next((path for path in paths if (path / "config.json").is_file()), None)
    if checkpoint is None:
        return Unchecked("the checkpoint is not at hand")
    return load_backbone(
        checkpoint,
        params["family"],
        device=device,
        dtype=params["precision"],
        adapter=next((path for path in paths if (path / "adapter_config.json").is_file()), None),
        merge=params["merge_adapter"],
        shifted=params["shifted"],
        float32_head=params["head_precision"] == "float32",
        attention=params["attention"],
    )


def _check_sentence(
    folder: Folder, report: Report, backbone: Backbone | Unchecked, one: Set, system: System, row: Row
) -> None:
    from entropy_valley.decoding import reference
    from entropy_valley.decoding.orders import reveal_counts
    from entropy_valley.model.prompt import Prompt

    params, file = folder.records[f"{one.home}/{HEADER}"]["params"], f"{one.home}/{TRANSLATIONS}"
    place, stored, rank = f"line {row.line}, tokens", row.values["tokens"], _rank(params, system)
    source = folder.testset(one.direction, system.testset).get(row.values["id"])
    if isinstance(backbone, Unchecked) or isinstance(rank, Unchecked) or source is None:
        reasons = [why for why in (backbone, rank, NO_TESTSET) if isinstance(why, Unchecked)]
        report.compare(PART, file, place, stored, reasons[0])
        return
    prompt = Prompt(params["prompt"], backbone.tokenizer, backbone.bos_id if params["bos"] else None)
    ids, length, schedule = prompt.encode(source["source"]), row.values["length"], params["schedule"]
    if not 0 < length <= backbone.context - len(ids) or not 0 < system.steps <= MOST_STEPS:
        raise ValueError(f"{length} slots in {system.steps} steps, in line {row.line}")
    trace = Trace(rank, [number for number in reveal_counts(length, system.steps, schedule) if number])
    _, tokens = reference.decode(backbone, ids, length, system.steps, schedule, trace, prompt.encode(""))
    end = backbone.tokenizer.get_vocab().get(backbone.family.turn_end)  # a chat's text ends with its turn, too
    tokens = [*tokens[: tokens.index(end)]] if end in tokens else [*tokens]
    if tokens == stored:
        report.compare(PART, file, place, stored, tokens)
    else:
        token, slots = trace.margins(tokens, stored, backbone.eos_id)
        margin = f"preferred by {token:.2g} nats; closest choice of slots before: {slots:.2g}"
        value: Any = tokens
        if params["precision"] != "float32":
            report.margins[f"{file}: {place}: {margin}"] = min(token, slots)
            value = Unchecked(f"other tokens in {params['precision']}, whose last digits depend on the machine")
        report.compare(PART, file, f"{place} ({margin})", stored, value)
    settings = params["methods"].get(system.method, {})
    if settings.get("method", system.method) == "ev" and settings.get("score", "mean") == "mean":
        _check_entropies(report, file, backbone, ids, row, params["precision"])


def _check_entropies(
    report: Report, file: str, backbone: Backbone, ids: Sequence[int], row: Row, precision: str
) -> None:
    """Read the candidates of EV again: the mean entropy of each all-mask canvas without its last slot, the EOS's."""
    from entropy_valley.decoding import reference

    canvas = row.values["canvas"]
    for length, score in zip(canvas["candidates"], canvas["scores"], strict=True):
        entropies, _ = reference.read(backbone, ids, [backbone.mask_id] * length)
        value: Any = sum(entropies[:-1]) / (length - 1)
        if precision != "float32":
            value = Unchecked(f"entropies in {precision}, whose last digits depend on the machine")
        place = f"line {row.line}, entropy of {length} slots"
        report.compare("EV's entropies, read again", file, place, score, value, NEAR)


def _rank(params: Mapping[str, Any], system: System) -> Callable[..., Any] | Unchecked:
    """The reveal order as the reference has it, where the reference decodes as this run."""
    from entropy_valley.decoding.reference import RANKS

    order = params["orders"][system.order]
    name, settings = order["order"], dict(order["order_settings"])
    if name in VARIABLE_LENGTH:
        return Unchecked("a canvas that changes in decoding")
    if settings.pop("sig", "stepwise_kl" if name in ONE_PASS_A_STEP else "distractor") != "stepwise_kl":
        return Unchecked("an order by the SIG against a distractor")
    if name not in RANKS:
        return Unchecked(f"the reveal order {name}")
    if params.get("prompt_cache", 1) != 1:
        return Unchecked("decoding with a prompt cache, which is approximate")
    if params.get("mask_token", "never") != "never":
        return Unchecked("decoding that may reveal masks")
    return functools.partial(RANKS[name], **settings)


class Trace:
    """A reveal order that notes the logits of each slot at the step that reveals it, and how close each choice of slots
    was: the score of the first slot that is not revealed less that of the last one that is."""

    def __init__(self, rank: Callable[..., torch.Tensor], counts: Sequence[int]) -> None:
        self._rank, self._counts = rank, iter(counts)
        self._revealed: dict[int, torch.Tensor] = {}
        self._closest: dict[int, float] = {}  # of all choices before a slot's
        self._least = math.inf

    def __call__(self, step: Any) -> torch.Tensor:
        scores, count = self._rank(step), next(self._counts)
        masked = [slot for slot in range(len(scores)) if slot not in self._revealed]
        masked.sort(key=lambda slot: (float(scores[slot]), slot))
        for slot in masked[:count]:
            self._revealed[slot], self._closest[slot] = step.logits[slot], self._least
        if len(masked) > count:
            self._least = min(self._least, float(scores[masked[count]] - scores[masked[count - 1]]))
        return scores

    def margins(self, tokens: Sequence[int], stored: Sequence[int], eos: int) -> tuple[float, float]:
        """Of the first slot that was revealed as another token than the stored one: by how many nats the reference
        prefers its own, and how close the closest choice of slots before was."""
        own, other = [*tokens, eos], [*stored, eos]
        for slot, logits in self._revealed.items():
            if slot < min(len(own), len(other)) and own[slot] != other[slot]:
                return float(logits[own[slot]] - logits[other[slot]]), self._closest[slot]
        return math.nan, math.nan

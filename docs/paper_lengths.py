"""What the paper's own numbers say about canvas lengths at 8B, from its tables and the sentences of WMT22.

    python docs/paper_lengths.py FOLDER     # of WMT22's files, generaltest2022.en-zh.src.en and so on

The paper prints the slots of all calls of a sentence (``tab:direct_length_baselines``): of Ratio 32 times its canvas,
of EV 32 times its canvas and its probes once. What the probes take depends on |x|, in tokens of LLaDA. A count of words
or of characters stands for it, multiplied by the factor that gives Ratio's mean canvas, without a slot for the EOS or
with one (``ratio_slot``). EV's number of probes, which the paper prints too, shows how well this fits. The second
question is how far one slot more goes: COMET of a fixed ratio with one slot more on average, interpolated between the
ratios of ``tab:ratio_sweep``.
"""

import csv
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from check_numbers import RESULTS

from entropy_valley import files
from entropy_valley.experiment.stats.paper_numbers import find, means
from entropy_valley.lengths.base import candidate_length

FOLDER = RESULTS / "paper"
SOURCES = {"en-zh": "en-zh.src.en", "zh-en": "en-zh.ref.A.zh", "en-de": "en-de.src.en"}
STEPS, SWEPT = 32, 500  # of tab:direct_length_baselines; sentences of tab:ratio_sweep, the first ones
UNITS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "words": lambda text: len(re.findall(r"[\u4e00-\u9fff]|\w+|[^\w\s]", text)),  # a Chinese character is one, too
}
Row = dict[str, str | float]


def number(label: str, metric: str, **named: str) -> float:
    """A number of the paper."""
    published = find(label, metric, **named)
    if published is None:
        raise LookupError((label, metric, named))
    return published.value


def grid(direction: str) -> list[float]:
    """EV's candidate ratios."""
    return [
        one.value
        for one in means()
        if (one.label, one.metric, one.direction) == ("sec:method-R", "grid_ratio", direction)
    ]


def _factor(direction: str, counts: Sequence[int], slot: int) -> float:
    """The factor by which counts become tokens of which Ratio's mean canvas, with 0 or 1 EOS slots, is the paper's."""
    ratio = number("sec:appendix_repro", "ratio", direction=direction, system="ratio")
    canvas = number("tab:direct_length_baselines", "slots", direction=direction, system="ratio") / STEPS
    low, high = 0.0, 4.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_canvas(_tokens(counts, middle), ratio, slot) < canvas else (low, middle)
    return high


def _tokens(counts: Sequence[int], factor: float) -> list[int]:
    return [max(1, round(factor * count)) for count in counts]


def _mean_canvas(tokens: Sequence[int], ratio: float, slot: int) -> float:
    sentences = Counter(tokens).items()  # a few hundred lengths, of thousands of sentences
    return sum(times * (candidate_length(ratio, count) - 1 + slot) for count, times in sentences) / len(tokens)


def canvases(direction: str, tokens: Sequence[int]) -> Row:
    """Mean slots of a canvas of Ratio and of EV, the latter with its EOS slot and without what its probes take."""
    label = "tab:direct_length_baselines"
    slots, calls = (number(label, metric, direction=direction, system="ev") for metric in ("slots", "calls"))
    ratios = grid(direction)
    candidates = [{candidate_length(ratio, count) for ratio in ratios} for count in tokens]
    probed = sum(map(sum, candidates)) / len(tokens)
    return {
        "ratio_canvas": number(label, "slots", direction=direction, system="ratio") / STEPS,
        "ev_canvas": (slots - probed) / STEPS,
        "probe_slots": probed,
        "probes_printed": calls - STEPS,
        "probes_here": sum(map(len, candidates)) / len(tokens),
    }


def one_slot_more(direction: str, tokens: Sequence[int]) -> Row:
    """COMET of a fixed ratio with one slot more on average, and the share of EV's lead that it has."""
    label, here = "tab:ratio_sweep", {"direction": direction}
    swept = {
        float(one.system.removeprefix("ratio_")): one.value
        for one in means()
        if (one.label, one.metric, one.direction) == (label, "comet", direction) and one.system.startswith("ratio_")
    }
    first = number("sec:appendix_repro", "ratio", system="ratio", **here)
    more = first + SWEPT / sum(tokens[:SWEPT])
    below, above = max(ratio for ratio in swept if ratio <= more), min(ratio for ratio in swept if ratio >= more)
    comet = swept[below] + (swept[above] - swept[below]) * (more - below) / (above - below)
    lead = number(label, "comet", system="ev", **here) - swept[first]
    return {"one_slot_ratio": more, "one_slot_comet": comet, "one_slot_share": (comet - swept[first]) / lead}


def measure(folder: Path) -> list[Row]:
    """A row for each unit and direction. En→De's slots are not printed; its factor is that of the other English."""
    texts = {
        name: (folder / f"generaltest2022.{file}").read_text("utf-8").splitlines() for name, file in SOURCES.items()
    }
    rows = []
    for (unit, count), slot in itertools.product(UNITS.items(), (0, 1)):
        counts = {direction: [count(line) for line in lines] for direction, lines in texts.items()}
        factors = {direction: _factor(direction, counts[direction], slot) for direction in ("en-zh", "zh-en")}
        for direction in SOURCES:
            tokens = _tokens(counts[direction], factors.get(direction, factors["en-zh"]))
            row: Row = {"unit": unit, "ratio_slot": slot, "direction": direction}
            row["source_tokens"] = sum(tokens) / len(tokens)
            row |= canvases(direction, tokens) if direction in factors else {}
            rows.append(row | one_slot_more(direction, tokens))
    return rows


def main(folder: Path) -> None:
    rows = measure(folder)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lengths.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{one:.6g}" if isinstance(one, float) else one for key, one in row.items()} for row in rows
        )
    digests = {file: files.file_digest(folder / f"generaltest2022.{file}") for file in SOURCES.values()}
    files.write_json(FOLDER / "origin.json", {"command": "python docs/paper_lengths.py FOLDER", "wmt22": digests})


if __name__ == "__main__":
    main(Path(sys.argv[1]))

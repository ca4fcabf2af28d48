"""Every number of the paper beside ours, or where these are of other models, the signs and orders of its claims."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley.config import Experiment
from entropy_valley.config.methods import grid
from entropy_valley.stats.our_numbers import NONE, Ours, OurTables, why_not
from entropy_valley.stats.paper_numbers import Published, deviation, means, tables
from entropy_valley.tables import formats, render
from entropy_valley.tables.names import Names
from entropy_valley.tables.report import Data, table
from entropy_valley.tables.show import Bold, Column, Row, Shown

PAPERS_METRIC = "COMET-22"
DEVIATIONS = 2  # a difference of more sample standard deviations over runs is outside of their spread


def compared_tables(names: Names) -> list[str]:
    """The files of the config's tables that have some of the paper's numbers."""
    root = names.experiment.results
    return [f"{root}/tables/{name}.csv" for name in tables() if f"tables/{name}" in names.made]


@table(
    "Each number that the paper prints, beside the number of this config: the difference, and whether it is within "
    "the spread over runs. Where models, data or metrics are others, the signs and orders of its claims.",
    lambda experiment: [],
    files=compared_tables,
    scored=False,
    wanted=lambda names: bool(names.experiment.paper_comparison.compare and names.experiment.scoring.comet),
    rule="comparison",
)
def paper_comparison(names: Names, data: Data) -> Shown:
    """The main claims, what differs, and again in its place; places of which nothing was run come last, and with
    ``compare: signs`` not at all."""
    of_values = names.experiment.paper_comparison.compare == "values"
    numbers = compare(our_tables(names, data), settings_of(names.experiment), of_values)
    claims, listed = [], []
    for row in numbers.to_dict("records"):
        if row["kind"] == "claim":
            claims.append(row)
        elif of_values or _is_compared(row):
            listed.append(row)
    rows = [_row(row, "Claims of the paper, and in how many places they hold") for row in claims]
    different = [row for row in listed if _differs(row)]
    rows += [_row(row, f"What differs: {len(different)}", placed=True) for row in different]
    places: dict[str, list[dict[Any, Any]]] = {}
    for row in listed:
        places.setdefault(row["label"], []).append(row)
    for label, of_place in sorted(places.items(), key=lambda place: not any(map(_is_compared, place[1]))):
        rows += [_row(row, f"{_place(label)} ({label})") for row in of_place]
    ours = f"{PAPERS_METRIC} is the paper's metric; the column Here has {names.metric.label} in its place."
    notes = [VALUES if of_values else SIGNS, *[ours] * (names.metric.label != PAPERS_METRIC)]
    return Shown(numbers, COLUMNS, rows, [*notes, *_summary(numbers), VERDICTS, ABSENT])


def our_tables(names: Names, data: Data) -> OurTables:
    """The rows of each table that has some of the paper's numbers, as texts."""
    experiment, matrix = names.experiment, names.experiment.matrix
    frames = {}
    for path in compared_tables(names):
        file = f"{data.files.root}/tables/{Path(path).name}"
        frames[Path(path).stem] = data.files.csv(file, dtype=str, keep_default_na=False)
    ours = {**experiment.paper_comparison.names, "comet": names.metric.name, "T": str(experiment.tables.steps)}
    seeds = matrix.seeds_of.get(experiment.tables.backbone, matrix.seeds)
    return OurTables(frames, ours | {f"run {letter}": str(seed) for letter, seed in zip("ABCDEF", seeds, strict=False)})


# --- The numbers: ours beside the paper's, and a verdict on each.

NOT_RUN, NO_TABLE, SETTING = "not run", "not compared", "setting"
KEYS = ("label", "backbone", "direction", "setting", "system", "metric")
NUMBERS = ("paper", "paper_std", "ours", "ours_std", "difference")
ORDERED = (  # metrics by which systems can be put in an order
    *("comet", "comet_x100", "bleu", "mae", "retention", "losses", "empty_rate", "entropy", "span"),
    *("cost", "calls", "slots", "latency", "latency_batch16"),
)
UNORDERED = ("tab:fwdcount_control", "calls")  # these are made equal on purpose
ACROSS_BACKBONES = ("tab:ar_reference",)  # their systems are of several backbones
CLAIMS = (  # what a reader asks first; label, metric and system of the larger number, systems of the smaller ones
    ("Entropy-Valley leads Fixed Ratio, by direction", "tab:main", "comet", "ev", "ratio"),
    ("… by direction and backbone", "tab:crossbb", "comet", "ev", "ratio"),
    ("Entropy-Valley leads every fixed ratio of the sweep", "tab:ratio_sweep", "comet", "ev", r"ratio_\d.*"),
    ("Entropy-Valley leads DAEDAL", "tab:direct_length_baselines", "comet", "ev", "daedal"),
    ("The length moves scores more than the reveal order", "fig:hero", "span", "lengths", "orders"),
)


@dataclass(frozen=True)
class NumberPair:
    """A number of the paper and ours, if it was run; ``state`` and ``why`` say why it is not there."""

    number: Published
    std: float
    ours: Ours | None
    state: str
    why: str = ""

    @property
    def difference(self) -> float:
        """Ours minus the paper's, as the paper prints it (per cent for shares)."""
        return NONE if self.ours is None else self.number.scale * self.ours.value - self.number.value

    def row(self, kind: str, verdict: str) -> dict[str, Any]:
        """A row of the comparison."""
        scale = self.number.scale
        ours, std = (scale * value for value in self.ours[:2]) if self.ours else (NONE, NONE)
        values = (self.number.value, self.std, ours, std, self.difference)
        described = {key: getattr(self.number, key) for key in (*KEYS, "what", "text")} | {"why": self.why}
        return {"kind": kind, **described, **dict(zip(NUMBERS, values, strict=True)), "verdict": verdict}


def compare(tables: OurTables, settings: Mapping[Any, float], of_values: bool) -> pd.DataFrame:
    """One row for each comparison of our tables, and of ``settings`` of the config by the numbers' keys.

    Columns: ``kind`` (claim, value, sign, order), those of :class:`Published` (``text`` is the value as printed, the
    order of the systems, or in how many places a claim holds), NUMBERS in the paper's unit, ``why`` it is not compared,
    ``ours_text`` (of an order or a claim), ``verdict``:

    - of a value: equal (as far as it is printed), within or outside (of :data:`DEVIATIONS` sample standard deviations
      over runs, the larger of both), differs (without any deviation), holds or fails (of a bound);
    - of the sign of a lead and an order: same, other, or how many pairs of systems are in the paper's order;
    - of one of :data:`CLAIMS`: same, or in how many places it holds, or fails, as in the paper;
    - of a setting of the config: same setting, other setting;
    - not run: the config did not ask for it; not compared: neither a table nor the config has it.
    """
    pairs = list(_pairs(tables, settings))
    values = [pair.row("value", _verdict(pair)) for pair in pairs]
    leads = (pair for pair in pairs if pair.number.metric.endswith("_lead") and pair.number.value)
    signs = [pair.row("sign", _sign(pair)) for pair in leads]
    labels = list(dict.fromkeys(pair.number.label for pair in pairs))
    rows = [*(values if of_values else signs), *_orders(pairs)]
    claims = [_claim(pairs, *claim) for claim in CLAIMS]
    return pd.DataFrame([*claims, *sorted(rows, key=lambda row: labels.index(row["label"]))])


def _pairs(tables: OurTables, settings: Mapping[Any, float]) -> Iterator[NumberPair]:
    config = {key: Ours(value, NONE) for key, value in settings.items()}
    for number in means():
        std, why = deviation(number), ""
        try:
            value = config.get(number.key) or tables.ours(number)
            state = SETTING if number.key in config else NOT_RUN if value is None else ""
        except KeyError:
            value, state, why = None, NO_TABLE, why_not(number)
        yield NumberPair(number, std.value if std else NONE, value, state, why)


def settings_of(experiment: Experiment) -> dict[tuple[str, ...], float]:
    """The config's values of the paper's numbers that are settings, no results, by the numbers' keys."""
    values = {number.key: _setting(number, experiment) for number in means()}
    return {key: value for key, value in values.items() if value is not None}


def _setting(number: Published, experiment: Experiment) -> float | None:
    """The config's value of a setting of the paper; None for any other number, and where the config has no such."""
    direction = experiment.directions.get(number.direction)
    match number.metric:
        case "grid_ratio" | "candidates" | "ratio_low" | "ratio_high" | "ratio":
            ratios = grid(experiment, number.system, number.direction) if direction else []
            if number.metric == "grid_ratio":
                return dict(enumerate(ratios, 1)).get(int(number.setting))
            if number.metric == "candidates":
                return len(ratios) or None
            return (max if number.metric == "ratio_high" else min)(ratios, default=None)
        case "probes" if number.label == "sec:method-cost":
            return max(len(grid(experiment, "ev", name)) for name in experiment.matrix.directions)
        case "max_steps":
            return direction.training.max_steps if direction else None
        case "budget":
            study = experiment.studies.get("full_pareto")
            return dict(enumerate(study.steps, 1)).get(int(number.setting)) if study and study.steps else None
        case "hybrid_share":
            return getattr(experiment.reveal_orders.get(number.system), "p", None)
        case "beams":
            return experiment.autoregressive.beams
        case "dev_pairs":
            return experiment.corpus.dev
        case "latency_batch":
            return experiment.latency.batch if experiment.latency else None
        case "train_pairs" | "lora_rank" if number.label == "sec:appendix_dream7b":
            return experiment.corpus.train if number.metric == "train_pairs" else experiment.training.lora.rank
    if limit := re.fullmatch("(words|characters)_([a-z]{2})_(least|most)", number.metric):
        unit, language, end = limit.groups()
        limits = getattr(experiment.corpus.filters.get(language), unit, None)
        return limits[end == "most"] if limits else None
    if people := experiment.human_evaluation:
        match number.metric, number.setting:
            case "raters", _:
                return len(people.annotators)
            case "rated_sentences", bucket if number.label == "sec:appendix_human_protocol":
                return getattr(people.sentences, bucket) if bucket else sum(people.sentences.model_dump().values())
    return None


def _verdict(pair: NumberPair) -> str:
    number = pair.number
    if pair.ours is None:
        return pair.state
    if pair.state == SETTING:
        same = abs(pair.difference) <= number.rounding or (number.relation == "≤" and pair.difference < 0)
        return "same setting" if same else "other setting"
    if number.relation in ("<", "≤"):
        value, bound = number.scale * pair.ours.value, number.value
        holds = value < bound if number.relation == "<" else value <= bound + number.rounding
        return "holds" if holds else "fails"
    beyond = abs(pair.difference) - number.rounding * (1 + 1e-9)
    if beyond <= 0:
        return "equal"
    ours = (number.scale * std for std in (pair.ours.std, pair.ours.spread))
    spreads = [std for std in (pair.std, *ours) if not math.isnan(std)]
    if not spreads:
        return "differs"
    return "within" if beyond <= DEVIATIONS * max(spreads) else "outside"


def _sign(pair: NumberPair) -> str:
    if pair.ours is None:
        return pair.state
    return "same" if pair.ours.value * pair.number.value > 0 else "other"


def _claim(
    pairs: Sequence[NumberPair], what: str, label: str, metric: str, larger: str, smaller: str
) -> dict[str, Any]:
    """In how many places one system is above all others that were run, in the paper and here."""
    places: dict[tuple[str, ...], dict[str, NumberPair]] = {}
    for pair in pairs:
        number = pair.number
        if (number.label, number.metric) == (label, metric):
            places.setdefault((number.backbone, number.direction, number.setting), {})[number.system] = pair
    papers, here = [], []
    for systems in places.values():
        first, others = systems[larger], [pair for name, pair in systems.items() if re.fullmatch(smaller, name)]
        papers.append(first.number.value > max(pair.number.value for pair in others))
        ran = [pair.ours.value for pair in others if pair.ours]
        here.append(first.ours.value > max(ran) if first.ours and ran else None)
    compared = [(paper, ours) for paper, ours in zip(papers, here, strict=True) if ours is not None]
    same = sum(paper == ours for paper, ours in compared)
    verdict = NOT_RUN if not compared else "same" if same == len(compared) else f"{same} of {len(compared)} places"
    texts = {"text": f"{sum(papers)} of {len(papers)}", "ours_text": f"{sum(map(bool, here))} of {len(compared)}"}
    empty = dict.fromkeys(("backbone", "direction", "setting", "system", "why"), "") | dict.fromkeys(NUMBERS, NONE)
    return {"kind": "claim", "label": label, "metric": metric, "what": what, **empty, **texts, "verdict": verdict}


def _orders(pairs: Sequence[NumberPair]) -> Iterator[dict[str, Any]]:
    """A row for each group of systems that differ in nothing else."""
    groups: dict[tuple[str, ...], list[NumberPair]] = {}
    for pair in pairs:
        number = pair.number
        ordered = number.metric in ORDERED and (number.label, number.metric) != UNORDERED
        if ordered and pair.state != NO_TABLE:
            backbone = "" if number.label in ACROSS_BACKBONES else number.backbone
            key = (number.label, backbone, number.direction, number.setting, number.metric)
            groups.setdefault(key, []).append(pair)
    for group in groups.values():
        if len({pair.number.value for pair in group}) > 1:
            yield _order(group)


def _order(group: Sequence[NumberPair]) -> dict[str, Any]:
    compared = [pair for pair in group if pair.ours]
    comparable = len({pair.number.value for pair in compared}) > 1
    paper = _sorted({pair.number.system: pair.number.value for pair in group})
    ours = _sorted({pair.number.system: pair.ours.value for pair in compared if pair.ours})
    shown = group[0].row("order", _agreement(compared) if comparable else NOT_RUN)
    return {**shown, **dict.fromkeys(NUMBERS, NONE), "system": "", "what": "", "text": paper, "ours_text": ours}


def _sorted(values: Mapping[str, float]) -> str:
    """``oracle > ev = ratio``: systems from the largest value down."""
    falling = sorted(values, key=lambda name: -values[name])
    signs = (" = " if values[one] == values[other] else " > " for one, other in itertools.pairwise(falling))
    return "".join(itertools.chain.from_iterable(zip(falling, [*signs, ""], strict=False)))


def _agreement(group: Sequence[NumberPair]) -> str:
    """How many pairs that differ in the paper are in its order here."""
    pairs = [(one, other) for one, other in itertools.permutations(group, 2) if one.number.value > other.number.value]
    same = sum(one.ours.value > other.ours.value for one, other in pairs if one.ours and other.ours)
    return "same" if same == len(pairs) else f"{same} of {len(pairs)} pairs"


# --- The layout.

COLUMNS = (
    Column("What", align="l"),
    Column("Paper", align="r"),
    Column("Here", align="r"),
    Column("Difference", align="r"),
    Column("Verdict", align="l"),
)
SIGNS = (
    "Other models, data or metrics than the paper's: sizes cannot be compared. Only claims, the signs of leads and the "
    "orders of systems are, and what was not run is in the CSV file alone."
)
VALUES = (
    f"equal: as far as the paper prints it. within, outside: at most, or more than, {DEVIATIONS} sample standard "
    "deviations over runs, the larger of the paper's and ours. differs: neither has one. holds, fails: of a bound. "
    "same setting, other setting: a number of the config, no result."
)
VERDICTS = (
    "same, other: the sign, or the order of systems from the largest value down. k of n pairs: that many pairs of "
    "systems which differ in the paper are in its order here. k of n places: in that many a claim is as in the paper."
)
ABSENT = "not run: this config did not ask for it. not compared: not had here, for the reason that is given."


def _summary(numbers: pd.DataFrame) -> Iterator[str]:
    """How many comparisons had which verdict."""
    names = {"value": "Values", "sign": "Leads", "order": "Orders"}
    for kind, rows in numbers[numbers["kind"] != "claim"].groupby("kind", sort=False):
        ordered = sorted(rows.to_dict("records"), key=_differs, reverse=True)  # what differs is counted first
        verdicts = Counter("in part" if row["verdict"].endswith("pairs") else row["verdict"] for row in ordered)
        yield f"{names[str(kind)]}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}."


PLACES = {  # of the paper's text, by its labels; tables and figures have the titles of ours
    "abstract": "Abstract",
    "sec:intro": "Introduction",
    "sec:method-R": "Candidate ratios",
    "sec:method-cost": "Cost of the method",
    "sec:exp-setup": "Setup",
    "sec:exp-main": "Main results, text",
    "sec:exp-ar": "Autoregressive reference, text",
    "sec:exp-human": "Human evaluation, text",
    "sec:analysis-dissoc": "Not reference matching",
    "sec:limitations": "Limitations",
    "sec:appendix_repro": "Configuration",
    "sec:appendix_method": "Length and order",
    "sec:appendix_ablations": "Controls, text",
    "sec:appendix_selector_checks": "Selector checks",
    "sec:appendix_coverage": "Coverage, text",
    "sec:appendix_cases": "Cases and failures, text",
    "sec:appendix_negatives_sig": "Orders guided by the source, text",
    "sec:appendix_dream7b": "Dream-Instruct",
    "sec:appendix_crossbb": "Results by backbone, text",
    "sec:appendix_defr": "Transfer to De→Fr, text",
    "sec:appendix_human_protocol": "Protocol of the human evaluation",
}


def _differs(row: Mapping[str, Any]) -> bool:
    return row["verdict"] in ("outside", "fails", "other") or row["verdict"].endswith(("pairs", "places"))


def _is_compared(row: Mapping[str, Any]) -> bool:
    return row["verdict"] not in (NOT_RUN, NO_TABLE)


def _place(label: str) -> str:
    """The paper's label in words."""
    kind, _, name = label.partition(":")
    return PLACES.get(label) or render.title(name) + ", figure" * (kind == "fig")


def _row(row: dict[str, Any], section: str, placed: bool = False) -> Row:
    """A comparison; with ``placed`` it names its place in the paper."""
    texts = _number(row) if row["kind"] in ("value", "sign") else _texts(row)
    label = f"{_place(row['label'])}: " * placed + _described(row)
    return Row([label, *texts, Bold(row["verdict"]) if _differs(row) else row["verdict"]], section)


NAMED = {  # what the paper's numbers are of, where no other table prints it
    "dream-7b": "Dream-Base",
    "diffullama-7b": "DiffuLLaMA",
    "dream-7b+diffullama-7b": "Dream-Base and DiffuLLaMA",
    "llama3-8b": "LLaMA-3-8B",
    "dream-instruct-plain": "Dream-Instruct, plain prompts",
    "dream-instruct-chat": "Dream-Instruct, chat template",
    "dream-instruct-zero-shot": "Dream-Instruct, zero-shot",
    "wmt19-fr-de-validation": "WMT19 held out",
    "flores-devtest": "FLORES devtest",
    "oracle": "Oracle",
    "ratio": "Ratio",
    "ev": "EV",
    **{f"ev_{grid}": f"EV {grid}" for grid in ("narrow", "medium", "wide", "full", "extra")},
    "beam4": "Beam",
    "cal": "CAL",
    "daedal": "DAEDAL",
    "neighbours": "Neighbours",
}


def _described(row: dict[str, Any]) -> str:
    """``En→Zh, T = 64, EV: COMET-22``."""
    metric = row["metric"].replace("x100", "× 100").replace("_", " ")
    setting = re.sub("[<>]?=|<", r" \g<0> ", row["setting"]).replace("<=", "≤").replace(">=", "≥")
    metric = metric.replace("comet", PAPERS_METRIC).replace("bleu", "BLEU").replace("ci ", "95 % CI, ")
    parts = [
        NAMED.get(row["backbone"], row["backbone"]) if row["backbone"] != "llada-8b" else "",
        formats.direction(row["direction"]) if row["direction"] else "",
        " ".join(NAMED.get(word, word.replace("_", " ")) for word in setting.split(" ")),
        _system(row["system"]),
    ]
    named = ", ".join(part for part in parts if part)
    return f"{named}: {row['what'] or metric}" if named else row["what"] or metric


def _system(name: str) -> str:
    """``ev-ratio`` as EV − Ratio, ``ratio@37`` as Ratio, T = 37."""
    return NAMED.get(name) or " − ".join(map(_one_system, name.split("-")))


def _one_system(name: str) -> str:
    name, _, steps = name.partition("@")
    kind, _, setting = name.rpartition("_")
    if kind == "hybrid":
        named = f"{formats.ORDERS[kind]}, p = 0.{setting}"
    elif kind == "ratio":
        named = f"{NAMED[kind]} {setting}"
    else:
        named = formats.ORDERS.get(name) or NAMED.get(name, name.replace("_", " "))
    return f"{named}, T = {steps}" if steps else named


def _texts(row: dict[str, Any]) -> list[str]:
    """The cells of an order of systems, or of a claim."""
    texts = [row["text"], row["ours_text"] if _is_compared(row) else ""]
    if row["kind"] == "order":
        parts = (re.split(" ([>=]) ", text) for text in texts)
        texts = [" ".join(part if part in (">", "=") else _system(part) for part in of_text) for of_text in parts]
    return [*(text or formats.NONE for text in texts), ""]


def _number(row: dict[str, Any]) -> list[str]:
    number = Published(*(row[key] for key in ("label", "backbone", "direction", "setting", "system", "metric", "text")))
    paper = formats.minus(number.text)
    if not pd.isna(row["paper_std"]):
        paper = f"{paper.removesuffix(number.unit)} ± {row['paper_std']:.{number.decimals}f}{number.unit}"
    if pd.isna(row["ours"]):
        return [paper, row["why"] or formats.NONE, formats.NONE]
    bound = number.relation in ("<", "≤")
    difference = formats.NONE if bound or row["kind"] == "sign" else _printed(number, row["difference"], "+")
    ours = _printed(number, row["ours"], "+" if number.signed else "", row["ours_std"])
    return [paper, ours, difference]


def _printed(number: Published, value: float, sign: str, std: float = float("nan")) -> str:
    """In the paper's decimals and unit."""
    kind = f".{number.decimals}{'f' if number.exponent is None else 'e'}"
    sign *= float(f"{value:{kind}}") != 0  # a zero has none
    spread = "" if pd.isna(std) else f" ± {std:{kind}}"
    return formats.minus(f"{value:{sign}z{kind}}") + spread + number.unit

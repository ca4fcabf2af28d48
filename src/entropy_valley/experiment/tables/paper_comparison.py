"""Every number of the paper beside ours, or where these are of other models, the signs and orders of its claims."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from entropy_valley import files
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.methods import grid
from entropy_valley.experiment.stats.our_numbers import CONFIG, NONE, Ours, OurTables
from entropy_valley.experiment.stats.paper_numbers import TRANSCRIPTION, Published, deviation, means, numbers, tables
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.names import Names
from entropy_valley.experiment.tables.reader import Data
from entropy_valley.experiment.tables.report import table
from entropy_valley.experiment.tables.show import Bold, Column, Row, Shown
from entropy_valley.settings import values_of

PAPERS_METRIC = "COMET-22"
# The places of the paper's text, by its labels, and what its numbers are of, where no other table prints it.
NAMED = dict(csv.reader(files.read_lines(TRANSCRIPTION.with_name("names.csv"))))
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
    # Of other models or metrics, sizes mean nothing.
    of_values = names.experiment.paper_comparison.compare == "values"
    table = compare(our_tables(names, data), settings_of(names.experiment), of_values)
    claims, listed = [], []
    for row in table.to_dict("records"):
        if row["kind"] == "claim":
            claims.append(row)
        elif of_values or _is_compared(row):
            listed.append(row)
    rows = [_row(row, "Claims of the paper, and in how many places they hold") for row in claims]
    different = [row for row in listed if _differs(row)]
    # What a reader looks for first; each stands again in its place.
    rows += [_row(row, f"What differs: {len(different)}", placed=True) for row in different]
    places: dict[str, list[dict[Any, Any]]] = {}
    for row in listed:
        places.setdefault(row["label"], []).append(row)
    # Places with anything to compare come first, else in the order of the paper.
    for label, of_place in sorted(places.items(), key=lambda place: not any(map(_is_compared, place[1]))):
        rows += [_row(row, f"{_place(label)} ({label})") for row in of_place]
    ours = f"{PAPERS_METRIC} is the paper's metric; the column Here has {names.metric.label} in its place."
    notes = [VALUES if of_values else SIGNS, *[ours] * (names.metric.label != PAPERS_METRIC)]
    return Shown(table, COLUMNS, rows, [*notes, *_summary(table), VERDICTS, ABSENT])


def our_tables(names: Names, data: Data) -> OurTables:
    """The rows of each table that has some of the paper's numbers, as texts."""
    experiment, matrix = names.experiment, names.experiment.matrix
    frames = {}
    for path in compared_tables(names):
        file = f"{data.files.root}/tables/{Path(path).name}"
        frames[Path(path).stem] = data.files.csv(file, dtype=str, keep_default_na=False)
    ours = {**experiment.paper_comparison.names, "comet": names.metric.name, "T": str(experiment.tables.steps)}
    # The paper calls its runs by letters.
    seeds = matrix.seeds_of.get(experiment.tables.backbone, matrix.seeds)
    return OurTables(frames, ours | {f"run {letter}": str(seed) for letter, seed in zip("ABCDEF", seeds, strict=False)})


# --- The numbers: ours beside the paper's, and a verdict on each.

NOT_RUN, NO_TABLE, SETTING = "not run", "not compared", "setting"
KEYS = ("label", "backbone", "direction", "setting", "system", "metric")
TEXTS = ["kind", "label", "metric", "what", "backbone", "direction", "setting", "system", "why"]
NUMBERS = ["paper", "paper_std", "ours", "ours_std", "difference"]
Pair = dict[str, Any]  # a number of the paper and ours: a row of the comparison, and what it is judged by
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
    if of_values:
        rows = [pair | {"kind": "value", "verdict": _verdict(pair)} for pair in pairs]
    else:
        # The limits of an interval have no sign to compare.
        leads = [pair for pair in pairs if pair["metric"].endswith("_lead") and pair["paper"]]
        rows = [pair | {"kind": "sign", "verdict": _sign(pair)} for pair in leads]
    labels = list(dict.fromkeys(pair["label"] for pair in pairs))
    rows = sorted([*rows, *_orders(pairs)], key=lambda row: labels.index(row["label"]))
    claims = [_claim(pairs, *claim) for claim in CLAIMS]
    table = pd.DataFrame([*claims, *rows], columns=[*TEXTS, *NUMBERS, "text", "ours_text", "verdict"])
    return table.fillna(dict.fromkeys(TEXTS, ""))


def _pairs(tables: OurTables, settings: Mapping[Any, float]) -> Iterator[Pair]:
    for number in means():
        std, why, ours = deviation(number), "", None
        if number.key in settings:
            ours, state = Ours(settings[number.key]), SETTING
        elif number.table in ("", CONFIG):
            state, why = NO_TABLE, "no such setting" if number.table else number.where
        else:
            ours = tables.ours(number)
            state = "" if ours else NOT_RUN
        # All in the unit of the paper: per cent for shares.
        value, deviation_here, spread = (number.scale * one for one in ours or Ours(NONE))
        yield {key: getattr(number, key) for key in (*KEYS, "what", "text")} | {
            "paper": number.value,
            "paper_std": std.value if std else NONE,
            "ours": value,
            "ours_std": deviation_here,
            "difference": value - number.value,
            "why": why,
            # What is not printed.
            "number": number,
            "spread": spread,
            "state": state,
        }


def settings_of(experiment: Experiment) -> dict[tuple[str, ...], float]:
    """The config's values of the paper's numbers that are settings, no results, by the numbers' keys: ``column`` is a
    path of keys in the config, and a list stands for its length. None for those that it does not have."""
    config = values_of(experiment)
    methods = dict.fromkeys(number.system for number in means())
    config["grids"] = {name: {one: grid(experiment, name, one) for one in experiment.directions} for name in methods}
    config["probes"] = max(len(grid(experiment, "ev", name)) for name in experiment.matrix.directions)
    config["rated"] = sum(config["human_evaluation"]["sentences"].values())
    settings = {}
    for number in means():
        if number.table == CONFIG:
            value: Any = config
            # A config without such a block has no such setting.
            with contextlib.suppress(LookupError, TypeError):
                for key in number.column.split("."):
                    value = value[int(key)] if isinstance(value, list) else value[key]
                settings[number.key] = len(value) if isinstance(value, list) else value
    return {key: value for key, value in settings.items() if value}


def _verdict(pair: Pair) -> str:
    number, off = pair["number"], abs(pair["difference"])
    if pair["state"] in (NOT_RUN, NO_TABLE):
        return pair["state"]
    if pair["state"] == SETTING:
        # A bound on a setting is kept by anything below it.
        same = off <= number.rounding or (number.relation == "≤" and pair["difference"] < 0)
        return "same setting" if same else "other setting"
    if number.relation == "<":
        return "holds" if pair["difference"] < 0 else "fails"
    if number.relation == "≤":
        return "holds" if pair["ours"] <= number.value + number.rounding else "fails"
    # As printed, the paper says no more than that.
    beyond = off - number.rounding * (1 + 1e-9)
    if beyond <= 0:
        return "equal"
    # The larger deviation judges: it is an estimate of few runs.
    spreads = [std for std in (pair["paper_std"], pair["ours_std"], pair["spread"]) if not math.isnan(std)]
    if not spreads:
        return "differs"
    return "within" if beyond <= DEVIATIONS * max(spreads) else "outside"


def _sign(pair: Pair) -> str:
    return pair["state"] or ("same" if pair["ours"] * pair["paper"] > 0 else "other")


def _claim(pairs: Sequence[Pair], what: str, label: str, metric: str, larger: str, smaller: str) -> Pair:
    """In how many places one system is above all others that were run, in the paper and here."""
    places: dict[tuple[str, ...], dict[str, Pair]] = {}
    for pair in pairs:
        if (pair["label"], pair["metric"]) == (label, metric):
            places.setdefault((pair["backbone"], pair["direction"], pair["setting"]), {})[pair["system"]] = pair
    papers, here, compared, same = 0, 0, 0, 0
    for systems in places.values():
        others = [pair for name, pair in systems.items() if re.fullmatch(smaller, name)]
        leads = systems[larger]["paper"] > max(pair["paper"] for pair in others)
        papers += leads
        ran = [pair["ours"] for pair in others if not pair["state"]]
        # A place counts where both sides were run.
        if ran and not systems[larger]["state"]:
            leads_here = systems[larger]["ours"] > max(ran)
            compared, here, same = compared + 1, here + leads_here, same + (leads == leads_here)
    verdict = NOT_RUN if not compared else "same" if same == compared else f"{same} of {compared} places"
    texts = {"text": f"{papers} of {len(places)}", "ours_text": f"{here} of {compared}"}
    return {"kind": "claim", "label": label, "metric": metric, "what": what, **texts, "verdict": verdict}


def _orders(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """A row for each group of systems that differ in nothing else."""
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        ordered = pair["metric"] in ORDERED and (pair["label"], pair["metric"]) != UNORDERED
        if ordered and pair["state"] != NO_TABLE:
            # Elsewhere systems of two backbones are never put in one order.
            backbone = "" if pair["label"] in ACROSS_BACKBONES else pair["backbone"]
            key = (pair["label"], backbone, pair["direction"], pair["setting"], pair["metric"])
            groups.setdefault(key, []).append(pair)
    for group in groups.values():
        if len({pair["paper"] for pair in group}) > 1:
            compared = [pair for pair in group if pair["state"] in ("", SETTING)]
            # Of those that were run, how many pairs that differ in the paper are in its order here.
            falling = [
                (one, other) for one, other in itertools.permutations(compared, 2) if one["paper"] > other["paper"]
            ]
            same = sum(one["ours"] > other["ours"] for one, other in falling)
            verdict = "same" if same == len(falling) else f"{same} of {len(falling)} pairs"
            yield {key: group[0][key] for key in ("label", "backbone", "direction", "setting", "metric", "why")} | {
                "kind": "order",
                "text": _sorted(group, "paper"),
                "ours_text": _sorted(compared, "ours"),
                "verdict": verdict if falling else NOT_RUN,
            }


def _sorted(group: Sequence[Pair], key: str) -> str:
    """``oracle > ev = ratio``: systems from the largest value down."""
    falling = sorted(group, key=lambda pair: -pair[key])
    text = falling[0]["system"] if falling else ""
    for one, other in itertools.pairwise(falling):
        text += f" {'=' if one[key] == other[key] else '>'} {other['system']}"
    return text


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


def _summary(table: pd.DataFrame) -> Iterator[str]:
    """How many comparisons had which verdict."""
    names = {"value": "Values", "sign": "Leads", "order": "Orders"}
    for kind, rows in table[table["kind"] != "claim"].groupby("kind", sort=False):
        ordered = sorted(rows.to_dict("records"), key=_differs, reverse=True)  # what differs is counted first
        verdicts = Counter("in part" if row["verdict"].endswith("pairs") else row["verdict"] for row in ordered)
        yield f"{names[str(kind)]}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}."


def _differs(row: Mapping[str, Any]) -> bool:
    return row["verdict"] in ("outside", "fails", "other") or row["verdict"].endswith(("pairs", "places"))


def _is_compared(row: Mapping[str, Any]) -> bool:
    return row["verdict"] not in (NOT_RUN, NO_TABLE)


def _place(label: str) -> str:
    """The paper's label in words."""
    kind, _, name = label.partition(":")
    return NAMED.get(label) or render.title(name) + ", figure" * (kind == "fig")


def _row(row: dict[str, Any], section: str, placed: bool = False) -> Row:
    """A comparison; with ``placed`` it names its place in the paper."""
    texts = _number(row) if row["kind"] in ("value", "sign") else _texts(row)
    label = f"{_place(row['label'])}: " * placed + _described(row)
    return Row([label, *texts, Bold(row["verdict"]) if _differs(row) else row["verdict"]], section)


def _described(row: dict[str, Any]) -> str:
    """``En→Zh, T = 64, EV: COMET-22``."""
    # Names in the file are in ASCII.
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
    number = numbers()[tuple(row[key] for key in KEYS)]
    paper = formats.minus(number.text)
    if not pd.isna(row["paper_std"]):
        paper = f"{paper.removesuffix(number.unit)} ± {row['paper_std']:{number.style}}{number.unit}"
    if pd.isna(row["ours"]):
        return [paper, row["why"] or formats.NONE, formats.NONE]
    bound = number.relation in ("<", "≤")
    difference = formats.NONE if bound or row["kind"] == "sign" else _printed(number, row["difference"], "+")
    ours = _printed(number, row["ours"], "+" if number.signed else "", row["ours_std"])
    return [paper, ours, difference]


def _printed(number: Published, value: float, sign: str, std: float = float("nan")) -> str:
    """In the paper's decimals and unit."""
    sign *= float(f"{value:{number.style}}") != 0  # a zero has none
    spread = "" if pd.isna(std) else f" ± {std:{number.style}}"
    return formats.minus(f"{value:{sign}z{number.style}}") + spread + number.unit

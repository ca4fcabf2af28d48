"""Every number of the paper beside ours, or where these are of other models, the signs and orders of its claims."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.methods import grid
from entropy_valley.experiment.stats.paper_numbers import (
    CONFIG,
    NONE,
    WORDS,
    Ours,
    OurTables,
    Published,
    deviation,
    means,
    numbers,
)
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.report import Bold, Data, Row, Shown, aligned, table
from entropy_valley.settings import values_of

PAPERS_METRIC = "COMET-22"
DEVIATIONS = 2  # a difference of more sample standard deviations over runs is outside of their spread


@table(
    "Each number that the paper prints, beside the number of this config: the difference, and whether it is within "
    "the spread over runs. Where models, data or metrics are others, the signs and orders of its claims.",
    lambda experiment: [],
    files=lambda names: [f"{names.experiment.results}/tables/{name}.csv" for name in names.made],
    scored=False,
    wanted=lambda names: bool(names.experiment.paper_comparison.compare and names.experiment.scoring.comet),
    rule="comparison",
)
def paper_comparison(data: Data) -> Shown:
    """The main claims, what differs, and again in its place; places of which nothing was run come last, and with
    ``compare: signs`` not at all."""
    # Of other models or metrics, sizes mean nothing.
    of_values = data.experiment.paper_comparison.compare == "values"
    table = compare(our_tables(data), config_of(data.experiment), of_values)
    is_claim, is_compared = table["kind"] == "claim", ~table["verdict"].isin([NOT_RUN, NO_TABLE])
    listed = table[~is_claim & (is_compared | of_values)]
    different = listed[listed["verdict"].map(_differs)]
    rows = _rows(table[is_claim], "Claims of the paper, and in how many places they hold")
    # What a reader looks for first; each stands again in its place.
    rows += _rows(different, f"What differs: {len(different)}", placed=True)
    # Places with anything to compare come first, else in the order of the paper.
    is_empty = ~is_compared[listed.index].groupby(listed["label"]).transform("any")
    in_places = listed.loc[is_empty.sort_values(kind="stable").index]
    rows += _rows(in_places)
    ours = f"{PAPERS_METRIC} is the paper's metric; the column Here has {data.metric.label} in its place."
    notes = [VALUES if of_values else SIGNS, *[ours] * (data.metric.label != PAPERS_METRIC)]
    return Shown(table, COLUMNS, rows, [*notes, *_summary(table[~is_claim]), VERDICTS, ABSENT])


def our_tables(data: Data) -> OurTables:
    """The rows of each table that has some of the paper's numbers, as texts."""
    experiment, matrix = data.experiment, data.experiment.matrix
    frames = {}
    for name in data.made:
        frames[name] = data.files.csv(f"{data.files.root}/tables/{name}.csv", dtype=str, keep_default_na=False)
    ours = {**experiment.paper_comparison.names, "comet": data.metric.name, "T": str(experiment.tables.steps)}
    # The paper calls its runs by letters.
    seeds = matrix.seeds_of.get(experiment.tables.backbone, matrix.seeds)
    return OurTables(frames, ours | {f"run {letter}": str(seed) for letter, seed in zip("ABCDEF", seeds, strict=False)})


# --- The numbers: ours beside the paper's, and a verdict on each.

NOT_RUN, NO_TABLE = "not run", "not compared"
KEYS = ("label", "backbone", "direction", "setting", "system", "metric")
TEXTS = ["kind", "label", "metric", "what", "backbone", "direction", "setting", "system", "why"]
NUMBERS = ["paper", "paper_std", "ours", "ours_std", "difference"]
GROUP = ["label", "backbone", "direction", "setting", "metric"]  # systems that differ in nothing else
# Metrics by which systems can be put in an order.
ORDERED = (
    "comet", "comet_x100", "bleu", "mae", "retention", "losses", "empty_rate", "entropy", "span",
    "cost", "calls", "slots", "latency", "latency_batch16",
)  # fmt: skip
CLAIMS = (  # what a reader asks first; label, metric and system of the larger number, systems of the smaller ones
    ("Entropy-Valley leads Fixed Ratio, by direction", "tab:main", "comet", "ev", "ratio"),
    ("… by direction and backbone", "tab:crossbb", "comet", "ev", "ratio"),
    ("Entropy-Valley leads every fixed ratio of the sweep", "tab:ratio_sweep", "comet", "ev", r"ratio_\d.*"),
    ("Entropy-Valley leads DAEDAL", "tab:direct_length_baselines", "comet", "ev", "daedal"),
    ("The length moves scores more than the reveal order", "fig:hero", "span", "lengths", "orders"),
)


def compare(tables: OurTables, config: Mapping[str, Any], of_values: bool) -> pd.DataFrame:
    """One row for each comparison of our tables, and of the values of the config, see :func:`config_of`.

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
    pairs = _pairs(tables, config)
    rows = pairs.assign(kind="value")
    if not of_values:
        # The limits of an interval have no sign to compare.
        rows = pairs[pairs["metric"].str.endswith("_lead") & (pairs["paper"] != 0)].assign(kind="sign")
        signs = np.where(rows["ours"] * rows["paper"] > 0, "same", "other")
        rows["verdict"] = rows["verdict"].where(rows["ours"].isna(), signs)
    rows = pd.concat([rows, pd.DataFrame(_orders(pairs))])
    # In the order of the paper: the order of systems stands below their values.
    labels = pairs["label"].unique()
    rows = rows.sort_values("label", key=lambda column: pd.Categorical(column, labels), kind="stable")
    columns = [*TEXTS, *NUMBERS, "text", "ours_text", "verdict"]
    table = pd.concat([pd.DataFrame(_claims(pairs)), rows], ignore_index=True).reindex(columns=columns)
    return table.fillna(dict.fromkeys(TEXTS, ""))


def _pairs(tables: OurTables, config: Mapping[str, Any]) -> pd.DataFrame:
    """Each number of the paper with ours, NaN where there is none, and the verdict on its value."""
    rows = []
    for number in means():
        why, ours, std = "", None, deviation(number)
        if number.table == CONFIG:
            ours = _setting(config, number.column)
            why = "" if ours else "no such setting"
        elif number.table:
            ours = tables.ours(number)
        else:
            why = number.where
        # All in the unit of the paper: per cent for shares.
        value, own_std, spread = (number.scale * one for one in ours or Ours(NONE))
        row = {key: getattr(number, key) for key in (*KEYS, "what", "text")} | {"why": why}
        values = (number.value, std.value if std else NONE, value, own_std, value - number.value)
        row |= dict(zip(NUMBERS, values, strict=True))
        verdict = _verdict(number, value - number.value, [row["paper_std"], own_std, spread])
        rows.append(row | {"verdict": verdict if ours else NO_TABLE if why else NOT_RUN})
    return pd.DataFrame(rows)


def config_of(experiment: Experiment) -> dict[str, Any]:
    """The values of the config by its keys; with the ``grids`` of its length methods by direction, how many ``probes``
    EV needs at most, and how many sentences are ``rated``."""
    config, methods = values_of(experiment), {number.system for number in means()}
    config["grids"] = {name: {one: grid(experiment, name, one) for one in experiment.directions} for name in methods}
    config["probes"] = max(len(grid(experiment, "ev", name)) for name in experiment.matrix.directions)
    config["rated"] = sum(config["human_evaluation"]["sentences"].values())
    return config


def _setting(config: Mapping[str, Any], path: str) -> Ours | None:
    """The value of the config at a path of keys, a list standing for its length; None where the config has none."""
    value: Any = config
    try:
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
    # A config without such a block has no such setting.
    except (LookupError, TypeError):
        return None
    value = len(value) if isinstance(value, list) else value
    return Ours(value) if value else None


def _verdict(number: Published, difference: float, spreads: Sequence[float]) -> str:
    """The verdict on a value of ours, which is by ``difference`` above the paper's."""
    # A bound is kept by anything below it.
    off = difference if number.relation in ("<", "≤") else abs(difference)
    # As printed, the paper says no more than that. A setting is no sum, so it has no rounding of its own.
    rounding = number.rounding * (1 if number.table == CONFIG else 1 + 1e-9)
    holds = off < 0 if number.relation == "<" else off <= rounding
    if number.table == CONFIG:
        return "same setting" if holds else "other setting"
    if number.relation in ("<", "≤"):
        return "holds" if holds else "fails"
    # The larger deviation judges: it is an estimate of few runs.
    spread = pd.Series(spreads).max()
    if holds or pd.isna(spread):
        return "equal" if holds else "differs"
    return "within" if off - rounding <= DEVIATIONS * spread else "outside"


def _claims(pairs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """In how many places one system is above all others that were run, in the paper and here."""
    for what, label, metric, larger, smaller in CLAIMS:
        numbers = pairs[(pairs["label"] == label) & (pairs["metric"] == metric)]
        is_first, is_other = (numbers["system"].str.fullmatch(pattern) for pattern in (larger, smaller))
        first, others = (numbers[one].groupby(GROUP)[["paper", "ours"]].max() for one in (is_first, is_other))
        lead = first - others
        # A place counts where both sides were run.
        leads, ran = lead > 0, lead["ours"].notna()
        same = (leads["paper"] == leads["ours"])[ran]
        yield {
            "kind": "claim", "label": label, "metric": metric, "what": what,
            "text": f"{leads['paper'].sum()} of {len(lead)}", "ours_text": f"{leads['ours'].sum()} of {ran.sum()}",
            "verdict": _of_several(same.sum(), len(same), "places"),
        }  # fmt: skip


def _orders(pairs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row for each group of systems that differ in nothing else."""
    # These calls are made equal on purpose.
    is_equal = (pairs["label"] == "tab:fwdcount_control") & (pairs["metric"] == "calls")
    ordered = pairs[pairs["metric"].isin(ORDERED) & (pairs["why"] == "") & ~is_equal]
    # Only here are systems of several backbones put in one order.
    backbones = ordered["backbone"].mask(ordered["label"] == "tab:ar_reference", "")
    for _, group in ordered.groupby([ordered["label"], backbones, *GROUP[2:]], sort=False):
        if group["paper"].nunique() > 1:
            ran = group.dropna(subset="ours")
            # Of those that were run, how many pairs that differ in the paper are in its order here.
            in_paper, here = (np.greater.outer(*[ran[name].to_numpy()] * 2) for name in ("paper", "ours"))
            yield group.iloc[0][GROUP].to_dict() | {
                "kind": "order",
                "text": _sorted(group, "paper"),
                "ours_text": _sorted(ran, "ours"),
                "verdict": _of_several((in_paper & here).sum(), in_paper.sum(), "pairs"),
            }


def _of_several(same: int, compared: int, what: str) -> str:
    """How many of several comparisons are as in the paper."""
    if not compared:
        return NOT_RUN
    return "same" if same == compared else f"{same} of {compared} {what}"


def _sorted(group: pd.DataFrame, column: str) -> str:
    """``oracle > ev = ratio``: systems from the largest value down."""
    text, above = "", NONE
    for name, value in group.sort_values(column, ascending=False, kind="stable")[["system", column]].to_numpy():
        text += (" = " if value == above else " > ") * bool(text) + name
        above = value
    return text


# --- The layout.

COLUMNS = aligned("l", "What") + aligned("r", "Paper", "Here", "Difference") + aligned("l", "Verdict")
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
    for kind, verdicts in table.groupby("kind", sort=False)["verdict"]:
        # What differs is counted first.
        falling = verdicts.sort_values(key=lambda of: ~of.map(_differs), kind="stable")
        counts = falling.mask(falling.str.endswith("pairs"), "in part").value_counts(sort=False)
        yield f"{names[str(kind)]}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}."


def _differs(verdict: str) -> bool:
    return verdict in ("outside", "fails", "other") or verdict.endswith(("pairs", "places"))


def _words(column: str, name: str) -> str:
    return WORDS.get((column, name), name.replace("_", " "))


def _rows(table: pd.DataFrame, section: str = "", placed: bool = False) -> list[Row]:
    """A row for each comparison, in a section or else in that of its label; with ``placed`` it names its place in the
    paper."""
    rows = []
    for row in table.to_dict("records"):
        kind, _, name = row["label"].partition(":")
        place = WORDS.get(("label", row["label"])) or render.title(name) + ", figure" * (kind == "fig")
        # `En→Zh, T = 64, EV: COMET-22`; what goes without saying has no word.
        words = [_words(key, row[key]) for key in ("backbone", "direction", "setting", "system")]
        named = ", ".join(filter(None, words))
        what = row["what"] or _words("metric", row["metric"])
        label = f"{place}: " * placed + (f"{named}: {what}" if named else what)
        texts = _number(row) if row["kind"] in ("value", "sign") else _texts(row)
        verdict = Bold(row["verdict"]) if _differs(row["verdict"]) else row["verdict"]
        rows.append(Row([label, *texts, verdict], section or f"{place} ({row['label']})"))
    return rows


def _texts(row: dict[str, Any]) -> list[str]:
    """The cells of an order of systems, or of a claim."""
    texts = [row["text"], "" if row["verdict"] == NOT_RUN else row["ours_text"]]
    if row["kind"] == "order":
        texts = [re.sub("[^ >=]+", lambda name: _words("system", name[0]), text) for text in texts]
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
    # Of a difference, a limit of one, or a correlation the paper prints the sign.
    ours = _printed(number, row["ours"], "+" if number.digits[0] in "+-" else "", row["ours_std"])
    return [paper, ours, difference]


def _printed(number: Published, value: float, sign: str, std: float = NONE) -> str:
    """In the paper's decimals and unit."""
    sign *= float(f"{value:{number.style}}") != 0  # a zero has none
    spread = "" if pd.isna(std) else f" ± {std:{number.style}}"
    return formats.minus(f"{value:{sign}z{number.style}}") + spread + number.unit

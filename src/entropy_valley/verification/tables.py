"""Every cell of the CSV files of tables and figures, from the rows of the sets that their records name.

A table is known by its columns. For each kind a function gives all of its rows again, as mappings; a column that is not
in one of them is not checkable.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from entropy_valley import files
from entropy_valley.verification import sets
from entropy_valley.verification.cells import SETTING, Expected, Table, grouped, named
from entropy_valley.verification.folder import REMEDY, Folder, NotAtHandError, Report, Unchecked, text
from entropy_valley.verification.numbers import NAN, deviation, mean
from entropy_valley.verification.sentences import (
    cases,
    categories,
    checks,
    coverage,
    curves,
    dissociation,
    failure_buckets,
    faithfulness,
    points,
)
from entropy_valley.verification.systems import ar_reference, hero, main_table, orders, significance, study

# --- Settings and counts beside results.


def cost(table: Table) -> Iterator[Expected]:
    measured, papers = Unchecked("a measured time"), Unchecked("a number of the paper")
    for budget, (place, cells) in itertools.product((32, 64, 128), grouped(table.cells, *SETTING).items()):
        calls = mean([table.costs(cell)["calls"] for cell in cells])
        about = {"direction": place[1], "item": f"T = {budget}", "paper": papers}
        yield {"part": "probe_share", **about, "here": (calls - place[-1]) / budget}
        yield {"part": "probe_cap", **about, "here": table.params["candidates"][place[1]] / budget}
    for row in _stored(table):
        if row["part"] not in ("probe_share", "probe_cap"):
            yield {**row, "here": measured, "paper": papers}


def corpus(table: Table) -> Iterator[Expected]:
    """Pairs that were drawn, and their length ratios; which were dropped only the data set could tell."""
    for direction in table.params["directions"]:
        backbones = files.read_json(table.folder.root / f"corpus/{direction}/length_ratios.json", files.MOST)
        pairs = {part: _pairs(table, f"corpus/{direction}/{part}.jsonl") for part in ("train", "dev")}
        dropped = Unchecked("pairs of a data set that is not among the results")
        for row in _stored(table):
            if row["direction"] == direction and not row["backbone"]:
                yield {**row, "value": len(pairs[row["metric"]]) if row["metric"] in pairs else dropped}
        for backbone in backbones:
            for metric, value in _length_ratios(table, backbone, pairs["train"]).items():
                yield {"direction": direction, "backbone": backbone, "metric": f"length_ratio_{metric}", "value": value}


def _pairs(table: Table, file: str) -> list[dict[str, Any]]:
    return files.read_jsonl(files.regular(table.folder.root / file, 2**31), ("source", "target"))


def _length_ratios(table: Table, backbone: str, pairs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    sides = [table.folder.count(backbone, [pair[side] for pair in pairs]) for side in ("source", "target")]
    percentiles = (10, 30, 50, 70, 90)
    if None in sides:
        return dict.fromkeys(
            ("median", "mean", "pairs", *(f"p{percent}" for percent in percentiles)), sets.NO_TOKENIZER
        )
    ratios = [target / source for source, target in zip(*sides, strict=True) if source]
    values = named([f"p{percent}" for percent in percentiles], np.percentile(ratios, percentiles).tolist())
    return {"median": float(np.median(ratios)), "mean": math.fsum(ratios) / len(ratios), "pairs": len(ratios), **values}


def dream_instruct(table: Table) -> Iterator[Expected]:
    variants = table.params["variants"]

    def rows(backbone: str, method: str, values: Expected) -> Iterator[Expected]:
        about = {key: variants[backbone][key] if backbone else NAN for key in DESCRIBED}
        for metric, value in values.items():
            yield {"backbone": backbone, "method": method, "metric": metric, "value": value, **about}

    for name, variant in variants.items():
        if any(cell.backbone == name for cell in table.cells) and variant["adapter"]:
            yield from rows(name, "", _losses(table, table.folder.local(table.place, variant["adapter"])))
    for cell in table.cells:
        texts = _described([row["hypothesis"] for row in table.rows(cell)])
        yield from rows(cell.backbone, cell.method, texts | {one: table.score(cell, one) for one in table.metrics})
    references = [row["target"] for row in table.testset(table.cells[0]).values()]
    yield from rows("", "reference", _described(references))


DESCRIBED = ("label", "prompt", "training", "shifted", "natural_shift")


def _described(texts: Sequence[str]) -> dict[str, Any]:
    empty = sum(not text.strip() for text in texts) / len(texts)
    return {"sentences": len(texts), "empty_rate": empty, "mean_characters": sum(map(len, texts)) / len(texts)}


def _losses(table: Table, adapter: str | None) -> dict[str, float]:
    if adapter is None:
        raise NotAtHandError("an adapter that is not among the results")
    folder = table.folder.root / adapter
    size = files.read_json(folder / "adapter.json", files.MOST)["vocabulary"]
    losses = [*csv.DictReader(files.read_lines(folder / "losses.csv", files.MOST))]
    values: dict[str, float] = {"vocabulary": size, "uniform_cross_entropy": math.log(size)}
    for name in ("cross_entropy", "loss"):
        curve = [float(row[name]) for row in losses]
        lowest = curve.index(min(curve))
        values |= {f"{name}_final": curve[-1], f"{name}_last_mean": mean(curve[-10:]), f"{name}_minimum": curve[lowest]}
        values |= {
            f"{name}_last_std": deviation(curve[-10:]),
            f"{name}_minimum_step": int(float(losses[lowest]["step"])),
        }
    return values | {"cross_entropy_over_uniform": values["cross_entropy_final"] / math.log(size)}


# --- Which table is which, and the comparison.


@dataclass(frozen=True)
class Kind:
    """Tables that have these columns: their rows again, and the columns that name a row."""

    columns: frozenset[str]
    rows: Callable[[Table], Iterator[Expected]]
    keys: Sequence[str]


def _kind(columns: str, rows: Callable[[Table], Iterator[Expected]], keys: str) -> Kind:
    return Kind(frozenset(columns.split()), rows, keys.split())


IN_SUMMARY = "backbone direction testset order steps method metric"
KINDS = (  # the first that fits
    _kind("panel delta_ratio", hero, f"panel {IN_SUMMARY} seed"),
    _kind("statistic cost lead", study, "backbone direction testset pool method order steps statistic seed"),
    _kind("first second wilcoxon_p", significance, "backbone direction testset order steps seed first second"),
    _kind("against ci_low", ar_reference, f"{IN_SUMMARY} against seed"),
    _kind("ev_length_mae score_closure", dissociation, f"{IN_SUMMARY} seed baseline"),
    _kind("error score id", points, "backbone direction testset method metric id"),
    _kind("delta_ratio gap_closure_mean", main_table, IN_SUMMARY),
    _kind("case source entropies", cases, "case"),
    _kind("rival cause share", failure_buckets, "direction testset seed statistic rival cause"),
    _kind("block item bootstrap_seed", coverage, "direction testset block item method"),
    _kind("check item metric value", checks, "direction testset seed check item metric"),
    _kind("category metric value", categories, "backbone direction testset steps seed category metric"),
    _kind("axis at low high", curves, "backbone direction testset axis at"),
    _kind("natural_shift value", dream_instruct, "backbone method metric"),
    _kind("part item here paper", cost, "part direction item"),
    _kind("method order metric value steps", orders, "backbone direction testset steps seed method order metric"),
    _kind("direction backbone metric value", corpus, "direction backbone metric"),
)
SETTINGS = {
    "hyperparams": "settings of the training, not results",
    "prompts": "settings of the decoding, not results",
    "method": "a drawing with made-up numbers",
    "paper_comparison": "the paper's numbers beside cells of other tables",
}
UNKNOWN = "a table that verify does not know"


def check(folder: Folder, report: Report) -> None:
    """Compare every cell of every CSV file in tables/ and figures/."""
    for path in sorted(path for part in ("tables", "figures") for path in (folder.root / part).glob("*.csv")):
        file, place = path.relative_to(folder.root).as_posix(), path.relative_to(folder.root).with_suffix(".made.json")
        header, rows = _read(folder, file)
        if place.as_posix() not in folder.records:
            report.unchecked[file]["a table without a record"] += len(header) * len(rows)
            continue
        with files.readable(folder.root / place, "record of a table with all that it names", REMEDY):
            _check_table(report, folder, place.as_posix(), file, header, rows)


def _read(folder: Folder, file: str) -> tuple[list[str], list[dict[str, str]]]:
    with files.readable(folder.root / file, "CSV file", REMEDY):
        content = files.regular(folder.root / file, files.MOST).read_text("utf-8")
        header, *rows = [*csv.reader(io.StringIO(content, newline=""))]
        return header, [dict(zip(header, row, strict=True)) for row in rows]


def _stored(table: Table) -> list[dict[str, str]]:
    """The rows of a table's own file, for what cannot be computed again: their keys alone are used."""
    return _read(table.folder, PurePosixPath(table.place.removesuffix(".made.json")).as_posix() + ".csv")[1]


def _check_table(
    report: Report, folder: Folder, place: str, file: str, header: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> None:
    kind = next((kind for kind in KINDS if kind.columns <= {*header}), None)
    name, again = PurePosixPath(file).stem, {}
    reason = SETTINGS.get(name) or (None if kind else UNKNOWN)
    if reason is None and kind is not None:
        keys = [key for key in kind.keys if key in header]
        try:
            table = Table(folder, place)
            make = faithfulness if name == "faithfulness_summary" else kind.rows
            again = {_key(row, keys): row for row in make(table) if _belongs(file, table, row)}
        except NotAtHandError as error:
            reason = str(error)
    if reason is not None:
        report.unchecked[file][reason] += len(header) * len(rows)
        return
    columns = {column for row in again.values() for column in row}
    for line, row in enumerate(rows, 2):
        expected = again.pop(key := _key(row, keys), None)
        if expected is None:
            report.compare(file, file, f"row {line} ({' '.join(key)})", "a row", "no such row, or not twice")
            continue
        for column in header:
            none = NAN if column in columns else Unchecked(f"a column that verify does not know: {column}")
            value = expected.get(column, none)  # rows of one kind are empty in the columns of another
            report.compare(file, file, f"row {line} ({' '.join(filter(None, key))}), {column}", row[column], value)
    for key in again:
        report.compare(file, file, f"row of {' '.join(filter(None, key))}", None, "a row")


def _belongs(file: str, table: Table, row: Expected) -> bool:
    """Some files have only a part of the rows of their kind; a figure of a summary only the main metric."""
    if file.startswith("figures/") and "panel" not in row and "id" not in row and "delta_ratio" in row:
        return row["metric"] == table.main and (file != "figures/crossbb.csv" or row["method"] == "ev")
    return {
        "tables/crossbb_bleu.csv": lambda: row["metric"] == "bleu",
        "figures/selector_checks.csv": lambda: row["axis"] == "ratios",
        "figures/entropy_valley.csv": lambda: row["axis"] != "ratios",
    }.get(file, lambda: True)()


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(text(row.get(key)) for key in keys)

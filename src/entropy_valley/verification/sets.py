"""The rows of each set: against their test set, their token ids, the candidates, and sacreBLEU and COMET."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS, System
from entropy_valley.verification.folder import HEADERS, REMEDY, Folder, Report, Row, Set, Unchecked, cells_of

TOTALS = ("calls", "slots", "passes", "run_tokens", "head_rows")
ONE_PASS_A_STEP = ("med", "left_to_right", "random")  # orders that look at the canvas alone
ON_GRID = ("ev", "neighbours", "lr_style", "eos_probe")  # they probe a grid of ratios
CHANGING = ("daedal", "rho_eos", "semi_autoregressive")  # decoders that change the canvas
MOST_NEIGHBOURS = 1000  # on either side of a canvas
TOKENIZERS = (None, "none", "13a", "intl", "zh", "char", "ja-mecab", "ko-mecab")  # of sacreBLEU; others are downloads
NO_TOKENIZER = Unchecked("the backbone's tokenizer is not at hand")
NO_TESTSET = Unchecked("the test set is not among the results")
NO_COMET = Unchecked("COMET's checkpoint is not at hand (--comet names one)")


def check(folder: Folder, report: Report, comet: Path | None) -> None:
    """Check every row of every set, and what the headers say of each cell."""
    for one in folder.sets:
        file, header = f"{one.home}/{TRANSLATIONS}", f"{one.home}/{HEADERS[0]}"
        with files.readable(folder.root / file, "file of translations", REMEDY):
            entries, outputs = dict(cells_of(folder.records[header])), folder.outputs(one.home)
            report.compare("rows", file, "cells", sorted(outputs), sorted(entries))
            for system, rows in outputs.items():
                _check_ids(folder, report, one, system, rows, file)
                _check_texts(folder, report, one, rows, file)
                _check_canvases(folder, report, one, system, rows, file)
                sums, entry = totals(folder, one.home, system), entries.get(system, {})
                for name in (key for key in entry if key in sums):
                    report.compare("totals of cells", header, f"{name} of {system.label}", entry[name], sums[name])
        if f"{one.home}/{HEADERS[1]}" in folder.records:
            with files.readable(folder.root / one.home / SCORES, "file of scores", REMEDY):
                _check_scores(folder, report, one, comet)


def _check_ids(folder: Folder, report: Report, one: Set, system: System, rows: Sequence[Row], file: str) -> None:
    """A row for each sentence of the test set, in its order."""
    ids = [*folder.testset(one.home, system.testset)]
    report.compare("rows", file, f"rows of {system.label}", len(rows), len(ids) or NO_TESTSET)
    for row, name in zip(rows, ids, strict=False):
        report.compare("rows", file, f"line {row.line}, id", row.values["id"], name)


def _check_texts(folder: Folder, report: Report, one: Set, rows: Sequence[Row], file: str) -> None:
    tokenizer = folder.tokenizer(one.backbone)
    for row in rows:
        ids, text = row.values.get("tokens"), NO_TOKENIZER
        if tokenizer is not None and ids is not None:
            text = tokenizer.decode(ids, skip_special_tokens=True).strip()
        report.compare("texts", file, f"line {row.line}, hypothesis", row.values.get("hypothesis"), text)


# --- Canvases: chosen from the scores in the row, as docs/methods.md says of each method.


def candidate(ratio: float, tokens: int, settings: Mapping[str, Any], reserved: bool = True) -> int:
    """The canvas of a ratio: its product with |x| rounded down, one slot at least, and one for the EOS."""
    if not isinstance(ratio, int | float):
        raise ValueError(f"a ratio is {ratio!r}, not a number")
    product = float(ratio) * tokens if settings.get("exact") is False else Fraction(str(ratio)) * tokens
    return max(1, math.floor(product)) + reserved


def _check_canvases(folder: Folder, report: Report, one: Set, system: System, rows: Sequence[Row], file: str) -> None:
    """The choice from the candidates, the candidates from |x|, and calls and slots from both."""
    if not system.order:  # an autoregressive system has no canvas
        return
    header = folder.records[f"{one.home}/{HEADERS[0]}"]["params"]
    settings = header.get("methods", {}).get(system.method)
    if settings is None:
        report.compare("canvases", file, f"method of {system.label}", system.method, "no method that was asked for")
        return
    tokens, counted = folder.tokens(one.home, system.testset), folder.counted(one.home, system.testset)
    if counted and folder.tokenizer(one.backbone) is not None:
        place = f"token counts of {system.testset} in {one.direction}/{one.backbone}/tokens"
        report.compare("texts", file, place, counted, tokens)
    name, order = settings.get("method", system.method), header["orders"][system.order]["order"]
    reassigned = _reassigned(folder, one, system, settings, tokens) if name == "reassigned" else {}
    for row in rows:
        canvas, counts = row.values["canvas"], tokens.get(row.values["id"])
        lengths = _candidates(name, settings, *counts) if counts else NO_TOKENIZER
        if name == "reassigned":
            lengths = [reassigned[row.values["id"]]] if reassigned else NO_TOKENIZER
        several = canvas.get("contenders", [canvas["length"]])
        values: dict[str, tuple[Any, Any]] = {"canvas.candidates": (canvas["candidates"], lengths)}
        if name in ON_GRID:
            values["number of canvas.scores"] = len(canvas["scores"]), len(canvas["candidates"])
        values["canvas.length"] = canvas["length"], _chosen(name, canvas, lengths)
        values["canvas.contenders"] = several, _contenders(name, settings, canvas)
        decoded = Unchecked("a canvas that changes in decoding") if order in CHANGING else canvas["length"]
        if len(several) > 1:
            decoded = Unchecked("which of several translations is kept: the others are not stored")
        values["length"] = row.values["length"], decoded
        for key, (stored, recomputed) in values.items():
            report.compare("canvases", file, f"line {row.line}, {key}", stored, recomputed)
        for (part, key), value in _costs(name, canvas, several, order, system.steps).items():
            stored = (canvas if part == "canvas" else row.values).get(key)
            report.compare("costs", file, f"line {row.line}, {key} of the {part}", stored, value)


def _candidates(name: str, settings: Mapping[str, Any], source: int, target: int) -> list[int] | Unchecked:
    if name == "oracle":
        return [max(2, target + 1 + settings["offset"]) if settings.get("offset") else target + 1]
    if name == "oracle_on_grid":
        grid = sorted({candidate(ratio, source, settings) for ratio in settings["ratios"]})
        return [min(grid, key=lambda length: abs(length - target - 1))]
    if name == "ratio":
        return [candidate(settings["ratios"], source, settings, settings.get("reserve_eos_slot", False))]
    if name in ON_GRID:
        return sorted({candidate(ratio, source, settings) for ratio in settings["ratios"]})
    return Unchecked(f"the candidates of {name}: they depend on what is not stored")


def _chosen(name: str, canvas: Mapping[str, Any], lengths: Any) -> int | Unchecked:
    """The candidate of the lowest score, the shorter one on a tie; DAEDAL takes its last, without scores the only."""
    candidates, scores = canvas["candidates"], canvas["scores"]
    if name == "daedal":
        return max(candidates)
    if scores:
        best = [length for length, score in zip(candidates, scores, strict=True) if score == min(scores)]
        ties = name in ("cal", "length_head") and len(best) > 1
        return Unchecked(f"a tie of {name}: the first in the order of its search wins") if ties else min(best)
    if isinstance(lengths, list) and name not in ON_GRID:
        return lengths[0]
    return Unchecked(f"the choice of {name}: it depends on what is not stored")


def _contenders(name: str, settings: Mapping[str, Any], canvas: Mapping[str, Any]) -> list[int]:
    """The canvases that are all decoded; the longest may lack where the context has no room for them."""
    length, lengths = canvas["length"], [canvas["length"]]
    if name == "neighbours":
        if (radius := settings.get("radius", 2)) > MOST_NEIGHBOURS:
            raise ValueError(f"{radius} neighbours on either side")
        lengths = [*range(max(2, length - radius), length + radius + 1)]
    elif name == "length_head":
        count = settings.get("beam", 1)
        ranked = sorted(zip(canvas["scores"], canvas["candidates"], strict=True))
        lengths = sorted(length for _, length in ranked[:count])
    longest = max(canvas.get("contenders", [length]))
    return [one for one in lengths if one <= longest]


def _costs(
    name: str, canvas: Mapping[str, Any], several: Sequence[int], order: str, steps: int
) -> dict[tuple[str, str], int]:
    """Calls and slots as the paper counts them: a probe a candidate, then T passes over each canvas."""
    costs: dict[tuple[str, str], int] = {}
    if name in ("oracle", "oracle_on_grid", "ratio", "reassigned", *ON_GRID):
        probed = canvas["candidates"] if canvas["scores"] else []
        costs |= {("canvas", "calls"): len(probed), ("canvas", "slots"): sum(probed)}
    if order in ONE_PASS_A_STEP:
        rescored = several if canvas.get("rescoring") and len(several) > 1 else []
        costs["sentence", "calls"] = canvas["calls"] + steps * len(several) + len(rescored)
        costs["sentence", "slots"] = canvas["slots"] + steps * sum(several) + sum(rescored)
    return costs


def _reassigned(
    folder: Folder, one: Set, system: System, settings: Mapping[str, Any], tokens: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """The canvases of a method, its ratios given to other sentences by a seeded shuffle; none without them."""
    origin = system._replace(method=settings.get("of", "ev"))
    homes = [other.home for other in folder.sets if other[1:] == one[1:] and origin in folder.outputs(other.home)]
    rows = folder.outputs(homes[0])[origin] if homes else []
    if not rows or not tokens:
        return {}
    names, lengths = [row.values["id"] for row in rows], [row.values["canvas"]["length"] for row in rows]
    counts = [max(1, tokens[name][0]) for name in names]
    groups = [[*range(len(names))]]
    if settings.get("within") == "deciles":
        ranked = sorted(groups[0], key=counts.__getitem__)
        groups = [ranked[len(ranked) * part // 10 : len(ranked) * (part + 1) // 10] for part in range(10)]
    generator, canvases = random.Random(settings["seed"]), {}
    for group in groups:
        givers = [*group]
        generator.shuffle(givers)
        for place, giver in zip(group, givers, strict=True):
            canvases[names[place]] = max(2, round(Fraction(lengths[giver], counts[giver]) * counts[place]))
    return canvases


@functools.cache
def totals(folder: Folder, home: str, system: System) -> dict[str, Any]:
    """What a header says of a cell, from its rows: sentences, the sums of costs, canvases that more steps leave as they
    are, and the mean distance of the canvas from the reference's tokens and EOS."""
    rows = [row.values for row in folder.outputs(home).get(system, [])]
    header, tokens = folder.records[f"{home}/{HEADERS[0]}"]["params"], folder.tokens(home, system.testset)
    changing = system.order and header["orders"][system.order]["order"] in CHANGING
    within = sum(changing or row["length"] <= system.steps for row in rows)
    errors: Any = NO_TOKENIZER
    if tokens:
        errors = round(sum(abs(row["length"] - tokens[row["id"]][1] - 1) for row in rows) / max(1, len(rows)), 6)
    sums = {name: sum(row.get(name, 0) for row in rows) for name in TOTALS}
    return {"sentences": len(rows), "within_steps": within, "length_mae": errors, **sums}


# --- Scores: by sacreBLEU, by COMET, and as the means of the rows.


class Scored:
    """The scores of the cells of a set, computed again from its texts and rows."""

    def __init__(self, folder: Folder, home: str) -> None:
        self.folder, self.home = folder, home
        self.params = folder.records[f"{home}/{HEADERS[1]}"]["params"]
        comet = self.params["comet"]
        self.main = comet.get("name") or ("comet22" if comet.get("checkpoint") else "toy_comet")

    @functools.cached_property
    def bleu(self) -> Any:
        from sacrebleu.metrics import BLEU

        name = self.params["bleu"].get("tokenize")
        if name not in TOKENIZERS:
            return Unchecked(f"BLEU with the tokenizer {name}, which sacreBLEU downloads")
        language = self.params["target_language"]
        try:
            return BLEU(tokenize=name, trg_lang=language)
        except (RuntimeError, ImportError) as error:
            return Unchecked(f"BLEU into {language!r}: {' '.join(str(error).split())}")

    @functools.cached_property
    def chrf(self) -> Any:
        from sacrebleu.metrics import CHRF

        return CHRF(**{name: self.params["chrf"][name] for name in ("char_order", "word_order", "beta")})

    @functools.cache  # noqa: B019
    def system(self, system: System, metric: str) -> float | Unchecked:
        """The score of a cell by a metric."""
        if metric in ("bleu", "chrf"):
            texts, testset = self.folder.texts(self.home, system), self.folder.testset(self.home, system.testset)
            if not testset or [*testset] != [*texts]:
                return Unchecked("rows that are not those of the test set") if testset else NO_TESTSET
            scorer = self.bleu if metric == "bleu" else self.chrf
            if isinstance(scorer, Unchecked):
                return scorer
            references = [row["target"] for row in testset.values()]
            return round(scorer.corpus_score([*texts.values()], [references]).score, 6)
        if self.params.get("metrics", {}).get(metric, {}).get("metric", "comet") != "comet":
            return Unchecked("a metric of the user's own")
        values: list[Any] = [row.values.get(metric) for row in self.folder.segments(self.home).get(system, [])]
        if not values or not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
            raise InputError(self.folder.root / self.home / SCORES, f"has no {metric} of {system.label}", REMEDY)
        return sum(values) / len(values)


scored = functools.cache(Scored)


def _check_scores(folder: Folder, report: Report, one: Set, checkpoint: Path | None) -> None:
    """BLEU, chrF and COMET of each sentence, one after the other, and of each cell."""
    scores, file, header = scored(folder, one.home), f"{one.home}/{SCORES}", f"{one.home}/{HEADERS[1]}"
    segments, entries = folder.segments(one.home), dict(cells_of(folder.records[header]))
    report.compare("rows", file, "cells", sorted(segments), sorted(folder.outputs(one.home)))
    settings = scores.params["comet"]
    place = checkpoint or (folder.root / "comet" if not settings.get("checkpoint") else None)
    alone = settings.get("batch_size") == 1
    model = _comet(place.resolve()) if place and place.exists() and alone else None
    no_comet = NO_COMET if alone else Unchecked("COMET in padded batches: a score depends on its neighbours")
    for system, rows in segments.items():
        _check_ids(folder, report, one, system, rows, file)
        references, outputs = folder.testset(one.home, system.testset), folder.texts(one.home, system)
        for row in rows:
            name, stored = row.values["id"], row.values.get(scores.main)
            chrf: float | Unchecked = NO_TESTSET
            comet: float | Unchecked = no_comet
            if name in references and name in outputs:
                source, output, reference = references[name]["source"], outputs[name], references[name]["target"]
                chrf = round(scores.chrf.sentence_score(output, [reference]).score, 6)
                if model:
                    comet = _comet_score(model, source, output, reference)
                    if isinstance(stored, int | float) and abs(stored - comet) < 2e-6:
                        comet = float(stored)  # six decimals, of sums in another order
            report.compare("BLEU and chrF", file, f"line {row.line}, chrf", row.values.get("chrf"), chrf)
            report.compare("COMET of sentences", file, f"line {row.line}, {scores.main}", stored, comet)
        entry = entries.get(system, {})
        for metric in (scores.main, "bleu", "chrf", *scores.params.get("metrics", {})):
            part = "BLEU and chrF" if metric in ("bleu", "chrf") else "COMET of cells, the mean of its rows"
            recomputed = scores.system(system, metric)
            report.compare(part, header, f"{metric} of {system.label}", entry.get(metric), recomputed)
        report.compare("totals of cells", header, f"sentences of {system.label}", entry.get("sentences"), len(rows))


@functools.cache
def _comet(place: Path) -> Any:
    """A COMET model on the CPU. The package reads tensors alone: torch refuses to execute what a checkpoint holds."""
    import torch

    path = (place / "checkpoints/model.ckpt" if place.is_dir() else place).absolute()
    with files.readable(path, "COMET checkpoint", "Name a .ckpt file in COMET's layout by --comet."):
        files.regular(path.parents[1] / "hparams.yaml", files.MOST)
        torch.load(files.regular(path), map_location="cpu", weights_only=True)
        with warnings.catch_warnings():  # of a package that COMET imports, to its developers
            warnings.filterwarnings("ignore", "pkg_resources is deprecated as an API")
            from comet.models import load_from_checkpoint

        with contextlib.chdir(path.parents[1]):
            return load_from_checkpoint(str(path), reload_hparams=True, local_files_only=True).float().eval()


@functools.lru_cache(maxsize=1_000_000)
def _comet_score(model: Any, source: str, output: str, reference: str) -> float:
    import torch

    inputs = model.prepare_sample([{"src": source, "mt": output, "ref": reference}], stage="predict")
    with torch.inference_mode():
        return round(model.predict_step(inputs).scores.item(), 6)

"""Ratings by simulated annotators of made-up systems: a pack, forms, and what they say."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import fake_results

from entropy_valley import files
from entropy_valley.demo import annotators
from entropy_valley.human_evaluation import forms, pack
from entropy_valley.human_evaluation.intake import read_forms, unblinded
from entropy_valley.human_evaluation.pack import PackSentence

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
SIZES = {"first_best": 6, "second_best": 6, "tied": 6, "random": 6}


def sentences(count: int = 80) -> list[PackSentence]:
    """The first system leaves out fewer words than the second one; the score is the share of words."""
    chance = random.Random(0)
    found = []
    for number in range(count):
        reference = chance.choices(WORDS, k=8)
        kept = [[word for word in reference if chance.random() < share] for share in (0.9, 0.75)]
        lead = (len(kept[0]) - len(kept[1])) / 8
        texts = map(" ".join, (reference, reference, *kept))
        found.append(PackSentence(f"t-{number}", *texts, difference=lead))
    return found


def write_pack(path: Path, mapping: Path) -> None:
    """Write a pack of these sentences, and its mapping."""
    made, behind = pack.make(sentences(), "en-zh", SIZES, seed=1)
    made.write(path)
    pack.write_mapping(mapping, made, "comet", behind)


def write(root: Path) -> dict[str, Any]:
    """Write the ratings of two directions; the params of the tables of the human evaluation."""
    params = fake_results.write(root, backbones={"llada-tiny": (1,)}, directions=("en-zh", "zh-en"))
    cells = [cell for method in ("ev", "ratio") for cell in params["cells"] if cell["method"] == method]
    people, paths = ["A", "B", "C"], {}
    for direction in ("en-zh", "zh-en"):
        made, behind = pack.make(sentences(), direction, SIZES, seed=1)
        filled = [root / f"{direction}.{name}.csv" for name in people]
        for name, path in zip(people, filled, strict=True):
            forms.write_csv(path, made, annotators.ratings(made, name, seed=1))
        known = {row.id: row for row in behind}
        given = read_forms(filled, made, people)
        paths[direction] = str(root / f"{direction}.ratings.jsonl")
        files.write_jsonl(paths[direction], [row for one in given.values() for row in unblinded(one, known)])
    return {**params, "cells": cells, "ratings": paths, "annotators": people, "pack": 24, "simulated": True}

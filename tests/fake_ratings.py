"""Ratings by simulated annotators of made-up systems: a pack, forms, and what they say."""

import random
from pathlib import Path

import pandas as pd

from entropy_valley.experiment.human_evaluation import pack

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
SIZES = {"first_best": 6, "second_best": 6, "tied": 6, "random": 6}


def sentences(count: int = 80) -> pd.DataFrame:
    """The first system leaves out fewer words than the second one; the score is the share of words."""
    chance = random.Random(0)
    found = []
    for number in range(count):
        reference = chance.choices(WORDS, k=8)
        kept = [[word for word in reference if chance.random() < share] for share in (0.9, 0.75)]
        lead = (len(kept[0]) - len(kept[1])) / 8
        texts = map(" ".join, (reference, reference, *kept))
        found.append([f"t-{number}", *texts, lead])
    return pd.DataFrame(found, columns=["id", "source", "reference", "first", "second", "difference"])


def write_pack(path: Path, mapping: Path) -> None:
    """Write a pack of these sentences, and its mapping."""
    made, behind = pack.make(sentences(), "en-zh", SIZES, seed=1)
    made.write(path)
    pack.write_mapping(mapping, made, "comet", behind)

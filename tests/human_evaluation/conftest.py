"""A small pack of hostile texts, and ratings of it."""

import random

import pandas as pd
import pytest

from entropy_valley.experiment.human_evaluation import pack

TEXTS = (
    "=1+1", "+x", "-y", "@z", "\tq", "'=a", "'b", 'say "no", please', "two\nlines", "请给我一张纸。",
    "<b>&amp;</b> {{ title }}", "١٢٣ مرحبا", "", "</script><script>alert(1)</script>", "a,b;c\td",
)  # fmt: skip
SIZES = {"first_best": 4, "second_best": 4, "tied": 4, "random": 4}


def sentences(count: int = 60, seed: int = 0) -> pd.DataFrame:
    """Sentences with outputs that name their system, and differences of both signs."""
    chance, rows = random.Random(seed), []
    for number in range(count):
        texts = [chance.choice(TEXTS), chance.choice(TEXTS), f"first {number}", f"second {number}"]
        rows.append([f"test-{number}", *texts, chance.choice([0.0, chance.uniform(-1, 1)])])
    return pd.DataFrame(rows, columns=["id", "source", "reference", "first", "second", "difference"])


@pytest.fixture(scope="session")
def made():
    """A pack and what is behind its rows."""
    return pack.make(sentences(), "en-zh", SIZES, seed=1)


@pytest.fixture(scope="session")
def filled(made):
    """What an annotator writes, by row; the last row is left open."""
    chance = random.Random(3)
    return {
        row.id: (*chance.choices("12345", k=4), chance.choice(("A", "B", "Tie")), chance.choice(TEXTS).strip())
        for row in made[0].rows[:-1]
    }

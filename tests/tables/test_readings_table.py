"""What a reading moves, on made-up scores: rows of variants, and the sentences that change."""

from __future__ import annotations

import fake_results
import pytest
from fake_sets import put, rows
from test_registry import experiment

from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import ScoredCell
from entropy_valley.tables.readings import Readings

NAMES = {"llada-tiny": (1, 2), "same": (1, 2), "other": (1, 2)}
ORIGINS = {"llada-tiny": "llada-tiny", "same": "llada-tiny", "other": "llada-tiny"}


@pytest.fixture
def params(tmp_path):
    """``same`` scores as its origin does; ``other`` has another score for 3 of 60 and for 6 of 60 sentences of EV."""
    params = fake_results.write(tmp_path, backbones=NAMES, directions=("en-de",))
    for cell in params["cells"]:
        if cell["backbone"] != "llada-tiny":
            origin = cell | {"path": cell["path"].replace(cell["backbone"], "llada-tiny")}
            scores = rows(origin, SCORES)
            changed = 3 * cell["seed"] if (cell["backbone"], cell["method"]) == ("other", "ev") else 0
            for row in scores[:changed]:
                row["comet22"] += 0.01
            put(cell, SCORES, scores, **ScoredCell(**origin).scores())
        if cell["backbone"] == "other":
            made_by = ScoredCell(**cell).decoding()["signature"] | {"decoder": "engine r1|med|T8|float32|floors"}
            put(cell, TRANSLATIONS, signature=made_by)
    return params | {"origins": ORIGINS}


VARIANT = {"variant_of": "llada-8b", "label": "by floors", "adapter_of": "llada-8b", "decoding": {"schedule": "floors"}}
STUDY = {"layout": "readings", "backbones": ["llada-8b", "mine"], "methods": ["oracle", "ratio", "ev"]}


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ({"steps": [16, 32]}, "one T"),
        ({"methods": ["oracle", "ev"]}, "needs the methods ratio"),
        ({"backbones": ["mine"]}, "'mine' is compared with 'llada-8b', which has no seed 1 here"),
    ],
)
def test_what_it_cannot_show_is_said_before_anything_runs(over, problem):
    with pytest.raises(InputError, match=problem):
        experiment(backbones={"mine": VARIANT}, studies={"mine": STUDY | over}, tables={"studies": ["mine"]})


def test_a_variant_is_beside_its_origin():
    whole = experiment(backbones={"mine": VARIANT}, studies={"mine": STUDY}, tables={"studies": ["mine"]})
    report = Readings("readings", "mine")
    assert report.extra(whole, report.cells(whole)) == {
        "against": "ev", "origins": {"llada-8b": "llada-8b", "mine": "llada-8b"},
    }  # fmt: skip

from __future__ import annotations

import pytest
from fake_sets import put
from making import made

from entropy_valley import tables
from entropy_valley.config import base_files, load_files
from entropy_valley.results import SCORES
from entropy_valley.tables.ar_reference import ArReference


def built(params):
    return made(ArReference, params)


def score(params, method, direction, *values):
    """Give the runs of a method in a direction, by seed, these COMET scores, of the system and of each sentence."""
    runs = [c for c in params["cells"] if (c["method"], c["direction"]) == (method, direction)]
    for cell, value in zip(runs, values, strict=True):
        put(cell, SCORES, [{"id": f"t{i}", "comet22": value + 0.0005 * (-1) ** i} for i in range(60)])


@pytest.fixture
def worked(matched):
    """Scores of En→De that can be worked out by hand: EV trails the autoregressive system by 0.08 and by 0.06."""
    score(matched, "ev", "en-de", 0.72, 0.74, 0.90)
    score(matched, "beam4", "en-de", 0.80, 0.80)
    return matched


def lines(table):
    """The texts of each row, by section and label."""
    return [
        (section.heading, {group.label: [cell.text for cell in group.rows[0].cells] for group in section.groups})
        for section in table.sections
    ]


def test_numbers_worked_by_hand(worked):
    (_, diffusion), (_, beam), (_, difference) = lines(built(worked)[0])
    assert diffusion["Entropy-Valley"][-1] == "73.00 ± 1.41"  # of the seeds 1 and 2, not of 3
    assert beam["Beam search, beam 4"][-1] == "80.00 ± 0.00"
    assert [texts[-1] for texts in difference.values()] == [*("−7.00", "−8.00 [−8.00, −8.00]", "−6.00 [−6.00, −6.00]")]


def test_a_direction_without_a_common_seed_is_not_available(matched):
    for cell in matched["cells"]:
        if (cell["method"], cell["direction"]) == ("beam4", "en-zh"):
            cell["seed"] += 7
    table, _ = built(matched)
    rows = lines(table)[2][1].values()
    assert [texts[2] for texts in rows] == ["n/a"] * 3
    assert not any("n/a" in text for texts in rows for text in texts[3:])


def test_each_system_has_its_size_and_how_it_was_adapted():
    experiment = load_files(base_files())
    systems = tables.configured(experiment)["tables/ar_reference"].params(experiment)["systems"]
    assert systems == {"llada-8b": ["8.0B", "LoRA-SFT"], "llama3-8b": ["8.0B", "LoRA-SFT"]}

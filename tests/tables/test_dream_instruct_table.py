from __future__ import annotations

import pytest
from making import made

from entropy_valley import files
from entropy_valley.tables.dream_instruct import DreamInstruct

HEADER = "step,loss,cross_entropy,learning_rate,gradient_norm\n"
NO_LOSSES = "–: no losses here: not trained, or a given adapter."


def built(params):
    return made(DreamInstruct, params)[0]


def rows_of(table):
    """Heading, label and the row's texts, for every variant."""
    return [
        (section.heading, group.label, [cell.text for cell in row.cells])
        for section in table.sections
        for group in section.groups
        for row in group.rows
    ]


@pytest.fixture
def worked(instruct):
    """The first variant with a cross-entropy above log|V| = log 16 = 2.77 at its end, below it at step 2."""
    files.write_text(
        f"{instruct['variants']['sft-plain-unshifted']['adapter']}/losses.csv",
        HEADER + "1,9,4,0,0\n2,1,2,0,0\n3,8,3,0,0\n",
    )
    for variant in instruct["variants"].values():
        if variant["adapter"]:
            files.write_json(f"{variant['adapter']}/adapter.json", {"vocabulary": 16})
    return instruct


def test_a_cross_entropy_above_that_of_a_uniform_guess_is_marked(worked):
    (_, _, texts), *_ = rows_of(built(worked))
    assert texts[:4] == ["3.00*", "1.08", "3.00 ± 1.00*", "2.00 (2)"]


def test_what_is_not_trained_has_no_loss(instruct):
    table = built(instruct)
    untrained = [texts for _, label, texts in rows_of(table) if label == "zero-shot"]
    assert [texts[:4] for texts in untrained] == [["–"] * 4] * 2
    assert NO_LOSSES in [note.text for note in table.notes]


def test_a_method_that_was_not_run_has_dashes(instruct):
    cells = [cell for cell in instruct["cells"] if cell["method"] != "oracle"]
    assert all(texts[-3:] == ["–"] * 3 for _, _, texts in rows_of(built(instruct | {"cells": cells})))

"""Length error beside score: what the table says of the claim, and where the figure's points are."""

from __future__ import annotations

import fake_results
import pytest
from fake_texts import LENGTHS, TRUE, add_canvases
from making import made

from entropy_valley.tables.dissociation import Dissociation


def notes_of(table):
    return {note.text.partition(":")[0]: note.text for note in table.notes}


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ({**LENGTHS, "ev": LENGTHS["ratio"]}, "holds in 6 of 6 runs (En→Zh 3 of 3, En→De 3 of 3), refuted in 0"),
        ({**LENGTHS, "ev": TRUE}, "holds in 0 of 6 runs (En→Zh 0 of 3, En→De 0 of 3), refuted in 6"),
        (dict.fromkeys(LENGTHS, TRUE), "holds in 0 of 6 runs (En→Zh 0 of 3, En→De 0 of 3), refuted in 0"),
    ],
    ids=["no nearer to the reference", "the reference's lengths", "no gap"],
)
def test_the_text_says_in_how_many_runs_the_claim_holds(tmp_path, lengths, said):
    params = fake_results.write(tmp_path, directions=("en-zh", "en-de"), sentences=200)
    table, _ = made(Dissociation, add_canvases(params, lambda cell, _: lengths[cell["method"]]))
    text = notes_of(table)["Over Ratio"]
    assert text.startswith(f"Over Ratio: {said} (interval below 0)")
    assert text.endswith("6 without a gap.") == (len(set(lengths.values())) == 1)
    assert "over 3 runs" in table.notes[1].text

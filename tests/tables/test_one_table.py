"""Results that do not belong together make no table: each error names the file, and leaves finished tables alone."""

from __future__ import annotations

import pytest

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS, record_path

MAIN = "tables/main"


@pytest.fixture
def second(run):
    """EV's cell of the second run of En→Zh."""
    return next(cell for cell in run.cells(MAIN) if (cell.method, cell.run.seed) == ("ev", 2))


def test_cells_decoded_differently_do_not_share_a_table(run, second):
    signature = run.entry(second, TRANSLATIONS)["signature"]
    run.put(second, TRANSLATIONS, signature=signature | {"decoder": "other"})
    with pytest.raises(InputError, match="decoder is other, but that of"):
        run.make(MAIN)


def test_an_adapter_does_not_count_as_two_runs(run):
    first, second = ([cell for cell in run.cells(MAIN) if cell.run.seed == seed] for seed in (1, 2))
    for one, other in zip(first, second, strict=True):
        run.put(other, TRANSLATIONS, signature=run.entry(one, TRANSLATIONS)["signature"])
    with pytest.raises(InputError, match=r"seed2/.*: has the same adapter as .*/seed1/"):
        run.make(MAIN)


@pytest.mark.parametrize("metric", ["toy_comet", "bleu"])
def test_cells_scored_differently_do_not_share_a_table(run, second, metric):
    run.put(second, SCORES, signatures=run.entry(second, SCORES)["signatures"] | {metric: "other"})
    with pytest.raises(InputError, match=rf"signature\.{metric} is other, but that of"):
        run.make(MAIN)


def test_a_header_that_does_not_have_a_cell_is_named(run, second):
    path = record_path(run.path(second, SCORES))
    header = files.read_json(path)
    header["facts"]["cells"] = [one for one in header["facts"]["cells"] if one["method"] != "ev"]
    files.write_json(path, {**header, "digest": files.digest({k: v for k, v in header.items() if k != "digest"})})
    with pytest.raises(InputError, match=r"scores\.json: has nothing of grammar ev med-T8\."):
        run.make(MAIN)
    path.unlink()
    with pytest.raises(InputError, match=r"scores\.json: file not found"):
        run.make(MAIN)


def test_rows_must_be_those_of_the_test_set(run, second):
    first, *rows = run.read(second, SCORES)
    run.put(second, SCORES, [{**first, "id": "t9"}, *rows])
    with pytest.raises(InputError, match="has not the sentences of other results"):
        run.make("tables/full_significance")

from __future__ import annotations

import pytest

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.scoring.sets import read_outputs

IDS = ["a", "b", "c"]


@pytest.fixture
def write(tmp_path):
    def write(ids, outputs):
        testset = tmp_path / "test.jsonl"
        files.write_jsonl(testset, ({"id": i, "source": f"s{i}", "target": f"t{i}"} for i in ids))
        return testset, [{"id": i, "hypothesis": f"h{i}"} for i in outputs], "set: test ev"

    return write


def test_outputs_side_by_side(write):
    outputs = read_outputs(*write(IDS, IDS))
    assert outputs.ids == IDS
    assert (outputs.sources[1], outputs.hypotheses[1], outputs.references[1]) == ("sb", "hb", "tb")


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (["a", "c", "b"], "set: test ev: id 'c' where 'b' is due"),
        (["a", "b"], "2 hypotheses for 3 sentences; id 'c' is only in"),
        (["a", "b", "c", "d"], "4 hypotheses for 3 sentences; id 'd' is only in"),
    ],
)
def test_differing_ids_are_named(write, outputs, says):
    with pytest.raises(InputError, match=says):
        read_outputs(*write(IDS, outputs))

"""Which systems are tested against each other, and that their sentences are paired."""

import pandas as pd
import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment.stats.significance import Analysis, paired_test
from entropy_valley.experiment.tables.paired_tests import compare, compare_autoregressive, of_shared_seeds

HOW = Analysis(resamples=50, seed=3)
KEY = {"backbone": "tiny", "direction": "en-zh", "testset": "test", "pool": "", "order": "med", "steps": 8}
IDS = ["s3", "s1", "s4", "s2"]  # as the file has them


def sentences(scores, **key):
    """Rows of four sentences, of scores by seed and method."""
    rows = []
    for (seed, method), values in scores.items():
        cell = KEY | key | {"seed": seed, "method": method}
        rows += [cell | {"id": name, "comet": value} for name, value in zip(IDS, values, strict=True)]
    return pd.DataFrame(rows)


SCORES = {(1, "ratio"): [0.1, 0.2, 0.3, 0.4], (1, "ev"): [0.2, 0.3, 0.4, 0.5], (1, "oracle"): [0.4, 0.3, 0.2, 0.1]}


def test_sentences_are_paired_by_their_id_and_drawn_in_their_order():
    rows = sentences(SCORES)
    tests = compare(rows, "comet", HOW).set_index(["first", "second"])
    assert tests.loc[("ev", "ratio"), ["ci_low", "ci_high"]].tolist() == pytest.approx([0.1, 0.1])
    expected = paired_test(SCORES[1, "oracle"], SCORES[1, "ev"], HOW)
    assert tests.loc[("oracle", "ev"), ["ci_low", "ci_high"]].tolist() == [expected["ci_low"], expected["ci_high"]]
    assert list(tests.index) == [("ev", "ratio"), ("oracle", "ev"), ("oracle", "ratio")]
    shuffled = pd.concat([rows[:4], rows[4:].sample(frac=1, random_state=1)])
    assert compare(shuffled, "comet", HOW).set_index(["first", "second"]).loc[tests.index].equals(tests)


def test_autoregressive_runs_are_paired_by_seed():
    beams = sentences({(seed, "beam4"): [0.1] * 4 for seed in (1, 2)}, backbone="llama", order="", steps=0)
    tests = compare_autoregressive(pd.concat([sentences(SCORES), beams]), "comet", HOW)
    assert tests[["seed", "first", "second", "second_backbone"]].to_numpy().tolist() == [[1, "ev", "beam4", "llama"]]
    assert tests["delta"].tolist() == pytest.approx([0.25])
    with pytest.raises(InputError, match="no run of theirs has the seed"):
        compare_autoregressive(pd.concat([sentences(SCORES), beams[beams["seed"] == 2]]), "comet", HOW)


@pytest.mark.parametrize(("seeds", "kept"), [([2, 3], [2, 2]), ([5], [1, 2, 5])])
def test_means_of_backbones_are_over_shared_seeds_or_all(seeds, kept):
    cells = [KEY | {"seed": seed} for seed in (1, 2)] + [KEY | {"backbone": "llama", "seed": seed} for seed in seeds]
    assert list(of_shared_seeds(pd.DataFrame(cells))["seed"]) == kept

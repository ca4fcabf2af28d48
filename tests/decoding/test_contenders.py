"""Several canvases of a sentence decoded, one kept: the choice is that of decoding each alone."""

import pytest
import reference_authors
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.decoding.canvas import Decoded
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.sentences import winner

RATIOS = METHODS["ev"]["ratios"]


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    monkeypatch.setitem(METHODS, "neighbours", {"ratios": RATIOS, "rescoring": "reveal"})
    return Bench(tmp_path, checkpoints, testset)


def winning(logprobs):
    """The length whose translation wins."""
    return winner({length: Decoded([length], 0, logprob, 1) for length, logprob in logprobs.items()}).tokens[0]


def test_the_best_mean_log_probability_wins():
    assert winning({4: -0.5, 5: -0.25, 6: -0.3}) == 5
    assert winning({6: -0.25, 4: -0.5, 5: -0.25}) == 5  # the shorter one on a tie
    assert winning({2: None, 9: -40.0}) == 9  # an empty text comes last
    assert winning({5: 0.0, 4: None, 3: -0.0}) == 3
    assert winning({3: None, 2: None}) == 2


class Fixed:
    """A canvas of so many slots, or for each sentence the next of several."""

    sees_reference = False

    def __init__(self, length=None, lengths=()):
        self.length, self.lengths = length, iter(lengths)

    def propose(self, sentence, probes):
        return ()

    def choose(self, sentence, probes):
        from entropy_valley.lengths import Choice

        return Choice(self.length or next(self.lengths))


def alone(bench, canvases):
    """The rows of each contender, decoded as if it were the canvas, without a store."""
    decoded = []
    for number in range(max(len(canvas.get("contenders", [0])) for canvas in canvases)):
        contenders = [canvas.get("contenders", [canvas["length"]]) for canvas in canvases]
        lengths = [one[min(number, len(one) - 1)] for one in contenders]
        fixed = {"method": f"{__name__}:Fixed", "lengths": lengths}
        decoded.append(bench.decode("alone", execution={"store": None}, chosen=fixed, out=f"alone{number}")[0])
    return list(zip(*decoded, strict=True))


def test_it_is_each_decoded_alone_and_the_best(bench):
    rows, info = bench.decode("neighbours")
    canvases = [row["canvas"] for row in rows]
    (ledger,) = bench.ledgers()
    assert any(len(canvas["contenders"]) > 1 for canvas in canvases if "contenders" in canvas)
    probed = [set(canvas["candidates"]) for canvas in canvases]
    for row, canvas, candidates, options in zip(rows, canvases, probed, alone(bench, canvases), strict=True):
        by_length = {option["length"]: option for option in options}
        assert sorted(by_length) == canvas.get("contenders", [canvas["length"]])
        best = by_length[winning({length: option["logprob"] for length, option in by_length.items()})]
        assert {key: row[key] for key in ("id", "hypothesis", "length", "tokens", "logprob")} == {
            key: best[key] for key in ("id", "hypothesis", "length", "tokens", "logprob")
        }
        assert row["calls"] == canvas["calls"] + 8 * len(by_length)
        assert row["slots"] == canvas["slots"] + 8 * sum(by_length)
        reused = len(candidates & by_length.keys())
        assert row["passes"] == canvas["calls"] + sum(option["passes"] for option in by_length.values()) - reused
    assert info["contenders"] == sum(len(canvas.get("contenders", [0])) for canvas in canvases)
    assert ledger["tokens"] == sum(row["run_tokens"] for row in rows)
    assert ledger["rows"] == sum(row["head_rows"] for row in rows)


def test_the_best_finished_text_is_kept_by_the_score_of_plain_loops(bench, monkeypatch, llada, no_model):
    before, _ = bench.decode("neighbours")
    monkeypatch.setitem(METHODS, "neighbours", {"ratios": RATIOS})
    rows, _ = bench.decode("neighbours", out="rescored")
    template, canvases = Prompt(bench.spec["prompt"], llada.tokenizer), [row["canvas"] for row in rows]
    assert canvases == [row["canvas"] | {"rescoring": True} for row in before]
    sources = [row["source"] for row in files.read_jsonl(bench.testset)]
    for source, row, canvas, options in zip(sources, rows, canvases, alone(bench, canvases), strict=True):
        scores = {
            option["length"]: reference_authors.finished_score(
                llada, template.encode(source), template.tokens(option["hypothesis"]), option["length"]
            )
            for option in options
        }
        assert row["logprob"] == pytest.approx(scores[row["length"]], abs=2e-6)
        assert scores[row["length"]] == pytest.approx(max(scores.values()), abs=2e-6)
        assert row["calls"] == canvas["calls"] + 9 * len(scores)
        assert row["slots"] == canvas["slots"] + 9 * sum(scores)
    assert [row["hypothesis"] for row in rows] != [row["hypothesis"] for row in before]
    no_model()
    assert bench.decode("neighbours", out="again")[0] == rows

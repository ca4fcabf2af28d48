"""From training pairs to statistics to canvases, on a tiny random model."""

import dataclasses
import pickle

import pytest
from bench import METHODS, Bench

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.lengths import make_method
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation.fits import Pairs
from entropy_valley.translation.job import RunModel
from entropy_valley.translation.translator import Translator

FITTED = {"cal": {"ratios": 1.2}, "ev_fit": {"candidates": 3, "pairs": 5}}
PARTS = ["confidence_bias", "line"]
FITS = {"length_statistics": {"parts": PARTS, "bias_pairs": 2}, "learned": {"methods": {"ev_fit": FITTED["ev_fit"]}}}


PAIRS = [("a small cat", "eine kleine Katze"), ("the dog", "der Hund")]


class Learner:
    """A method of a user's own, without a base."""

    sees_reference, learns = False, True

    def __init__(self, learn):
        self.learn = learn

    def propose(self, sentence, probes):
        return ()


@pytest.fixture
def bench(tmp_path, checkpoints, testset, monkeypatch):
    for method, settings in FITTED.items():
        monkeypatch.setitem(METHODS, method, settings)
    return Bench(tmp_path, checkpoints, testset)


def pairs_of(bench, limit=None):
    """The test set's pairs stand for training pairs."""
    model = RunModel(bench.spec, bench.execution)
    return Pairs(model.sentences(bench.testset).first(limit), model.runner("probe"))


def measure(bench, parts=PARTS, bias_pairs=2, limit=None):
    return pairs_of(bench, limit).statistics(parts, bias_pairs)


@pytest.mark.parametrize("method", FITTED)
def test_a_translator_is_fitted_as_the_job_is(bench, llada, method):
    statistics_of = {"parts": PARTS, "bias_pairs": 200}
    bench.fit(**FITS | {"length_statistics": statistics_of})
    rows, _ = bench.decode(method)
    pairs = [(row["source"], row["target"]) for row in files.read_jsonl(bench.testset)]
    any_method = make_method("ratio", {"ratios": 1.0})
    translator = Translator(llada, Prompt(bench.spec["prompt"], llada.tokenizer), any_method, steps=8)
    fitted = translator.fitted(method, pairs, iter(pairs), **FITTED[method])
    translations = fitted.translate([source for source, _ in pairs])
    assert [one.text for one in translations] == [row["hypothesis"] for row in rows]
    assert [[*one.scores.values()] for one in translations] == [row["canvas"]["scores"] for row in rows]
    again = pickle.loads(pickle.dumps(fitted.method))
    assert dataclasses.replace(translator, method=again).translate([pairs[0][0]]) == translations[:1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ev_fit", PAIRS), r"'ev_fit': learns from development pairs\. Give dev=: "),
        (("ev_fit", [], PAIRS), "no training pair has a source"),
        (("ev_fit", ["ab"], PAIRS), r"train: pair 1 is ab, not two texts\. Give \(source, target\) pairs"),
        (("ev_fit", PAIRS, [("a", None)]), r"dev: pair 1 is \('a', None\), not two texts"),
        (("ev_fti", PAIRS, PAIRS), "Did you mean ev_fit?"),
        (("ev_fit", PAIRS, PAIRS, {"candidate": 3}), "candidate = 3: unknown key. Did you mean candidates?"),
        (("oracle", PAIRS), "Oracle needs the reference"),
    ],
    ids=str,
)
def test_what_a_translator_cannot_be_fitted_to(llada, arguments, message):
    translator = Translator(llada, Prompt("{src}", llada.tokenizer), make_method("ratio", {"ratios": 1.0}))
    *given, settings = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises(InputError, match=message):
        translator.fitted(*given, **settings)


@pytest.mark.parametrize(
    ("learn", "message"),
    [
        (lambda examples: 1 / 0, r"test_length_statistics_job.py, Learner.learn: \d+ pairs: ZeroDivisionError"),
        (lambda examples: None, r"Learner.learn: \d+ pairs: returns None, which is not two\. Return the copy"),
    ],
)
def test_what_a_users_learn_does_wrong_is_said_of_it(bench, learn, message):
    with pytest.raises(InputError, match=message):
        pairs_of(bench).taught(Learner(learn))


def test_a_method_may_learn_without_a_probe(bench):
    rows = files.read_jsonl(bench.testset)
    seen, _ = pairs_of(bench).taught(Learner(lambda examples: (examples, {})))
    assert len(seen) == len(rows) and not any(one.probes for one in seen)


def test_a_pool_is_measured_as_if_it_were_the_corpus(bench):
    whole, rows = bench.testset, files.read_jsonl(bench.testset)
    measured = [measure(bench, limit=4)]
    bench.testset.write_text("".join(whole.read_text(encoding="utf-8").splitlines(keepends=True)[:4]), encoding="utf-8")
    measured.append(measure(bench))
    assert len(rows) > 4
    assert measured[0] == measured[1]

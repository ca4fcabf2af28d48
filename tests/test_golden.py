"""What a stage writes changes only with its revision, by which Snakemake and the store know old results.

Of a tiny run of each stage, golden.json has a digest of all words, tokens and counts, and the floating-point numbers.
These are compared with a tolerance, because another CPU adds in another order. Digests of weights, signatures and
versions are left out.
"""

import itertools
from pathlib import Path

import golden
import pytest
from tiny_checkpoints import checkpoints, one_thread  # noqa: F401 - fixtures

from entropy_valley import files, revisions

FILE = Path(__file__).with_name("golden.json")
RENEW = "python -m pytest tests/test_golden.py --renew"
STAGES = {
    "corpus": ["CORPUS"],
    "overlap": ["OVERLAP"],
    "tokens": ["TOKENS"],
    "length_ratios": ["LENGTH_RATIOS"],
    "pretraining": ["PRETRAINING"],
    "training": ["TRAINING"],
    "adoption": ["TRAINING", "ADOPTION"],
    "decoding": ["DECODING", "SOURCE_GUIDED"],
    "length_statistics": ["DECODING", "LENGTH_STATISTICS"],
    "learning": ["DECODING", "LEARNING"],
    "sig_concentration": ["DECODING", "SIG_CONCENTRATION"],
    "valley": ["DECODING", "VALLEY"],
    "length_head": ["DECODING", "LENGTH_HEAD"],
    "generation": ["GENERATION"],
    "scoring": ["SCORING"],
    "human_evaluation": ["HUMAN_EVALUATION"],
    "reporting": ["REPORTING"],
}


def verdict(known, found, now, own):
    """What is to be done, or None; ``known`` and ``found`` are results, ``now`` the revisions, ``own`` the stage's."""
    if known is None or known["revisions"] != now:
        return f"run `{RENEW}` to renew the golden file"
    if not golden.same(known, found):
        place = "src/entropy_valley/revisions.py"
        return f"raise the revision of {own} in {place} and run `{RENEW}` to renew the golden file"
    return None


@pytest.fixture(scope="module")
def stages(checkpoints, tmp_path_factory):  # noqa: F811
    return golden.Stages(tmp_path_factory.mktemp("golden"), checkpoints)


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_stage_writes_changes_only_with_its_revision(stage, stages, joined, request):
    found = golden.summary(getattr(stages, stage)())
    now = {name: getattr(revisions, name) for name in STAGES[stage]}
    everything = files.read_json(FILE) if FILE.exists() else {}
    known = everything.get(stage)
    said = verdict(known, found, now, STAGES[stage][-1])
    if said and said.startswith("run") and request.config.getoption("--renew"):
        files.write_json(FILE, everything | {stage: {"revisions": now, **found}})
    elif said:
        pytest.fail(f"{stage}: {said}", pytrace=False)


def test_every_revision_has_a_stage():
    names = {name for name, value in vars(revisions).items() if isinstance(value, int)}
    assert names == set(itertools.chain.from_iterable(STAGES.values()))

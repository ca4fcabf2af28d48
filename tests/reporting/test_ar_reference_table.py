from __future__ import annotations

import fake_results
import pytest
from fake_sets import put
from making import made

from entropy_valley.errors import InputError
from entropy_valley.reporting.reports.ar_reference import ArReference
from entropy_valley.results import SCORES


def built(params):
    return made(ArReference, params)


def score(params, method, direction, *values):
    """Give the runs of a method in a direction, by seed, these COMET scores, of the system and of each sentence."""
    runs = [c for c in params["cells"] if (c["method"], c["direction"]) == (method, direction)]
    for cell, value in zip(runs, values, strict=True):
        put(cell, SCORES, comet22=value)
        put(cell, SCORES, [{"id": f"t{i}", "comet22": value + 0.001 * (i % 2)} for i in range(60)])


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


def test_sections_and_rows(matched):
    table, _ = built(matched)
    assert [column.title for column in table.columns] == ["System", "En→Zh", "Zh→En", "En→De"]
    assert {column.over for column in table.columns[1:]} == {"toy COMET"}
    assert [(heading, list(rows)) for heading, rows in lines(table)] == [
        ("LLaDA-tiny, masked diffusion", ["Fixed ratio", "Entropy-Valley", "Oracle length"]),
        ("LLaMA-3-tiny, autoregressive, same training pairs", ["Beam search, beam 4"]),
        ("Entropy-Valley − LLaMA-3-tiny", ["Mean over runs", "Seed 1", "Seed 2"]),
    ]


def test_numbers_worked_by_hand(worked):
    (_, diffusion), (_, beam), (_, difference) = lines(built(worked)[0])
    assert diffusion["Entropy-Valley"][-1] == "0.7300 ± 0.0141"  # of the seeds 1 and 2, not of 3
    assert beam["Beam search, beam 4"][-1] == "0.8000 ± 0.0000"
    assert [texts[-1] for texts in difference.values()] == [
        *("−0.0700", "−0.0800 [−0.0800, −0.0800]", "−0.0600 [−0.0600, −0.0600]")
    ]


def test_one_common_seed_has_no_mean_over_runs(tmp_path):
    params = fake_results.write(tmp_path, autoregressive={"llama3-tiny": (2,)})
    table, _ = built(params)
    assert list(lines(table)[2][1]) == ["Seed 2"]
    assert "One run (training seed)." in [note.text for note in table.notes]


def test_bold_is_the_best_of_a_direction_but_oracle(worked):
    score(worked, "oracle", "en-de", 0.9, 0.9, 0.9)
    score(worked, "beam4", "en-zh", 0.1, 0.1)
    score(worked, "beam4", "zh-en", 0.1, 0.1)
    table, _ = built(worked)
    rows = [row for section in table.sections[:2] for group in section.groups for row in group.rows]
    assert [[cell.bold for cell in row.cells] for row in rows] == [
        [False, False, False],
        [True, True, False],
        [False, False, False],
        [False, False, True],
    ]


def test_csv_has_bleu_and_every_run(worked):
    _, frame = built(worked)
    assert not frame.duplicated(["backbone", "direction", "testset", "method", "against", "metric", "seed"]).any()
    assert set(frame[frame["method"] == "beam4"]["metric"]) == {"comet22", "bleu", "chrf"}
    leads = frame[(frame["direction"] == "en-de") & (frame["against"] == "llama3-tiny")]
    assert leads["mean"].tolist() == pytest.approx([-0.07, -0.08, -0.06])
    assert leads["seed"].isna().tolist() == [True, False, False]
    assert leads["runs"].tolist() == [2, 1, 1]
    assert leads["std"].isna().all()
    assert leads["p_two_sided_printed"].tolist()[1:] == ["< 0.005"] * 2


def test_a_direction_without_a_common_seed_is_not_available(matched):
    for cell in matched["cells"]:
        if (cell["method"], cell["direction"]) == ("beam4", "en-zh"):
            cell["seed"] += 7
    table, _ = built(matched)
    rows = lines(table)[2][1].values()
    assert [texts[0] for texts in rows] == ["n/a"] * 3
    assert not any("n/a" in text for texts in rows for text in texts[1:])


def test_footnote(matched):
    table, _ = built(matched)
    texts = [note.text for note in table.notes]
    assert texts[0] == "LLaDA-tiny; reveal order med, T = 8."
    assert "Mean ± sample standard deviation over 2 runs (training seeds)." in texts
    assert texts.count("decoder:") == 2


def test_one_masked_diffusion_backbone(tmp_path):
    params = fake_results.write(
        tmp_path, backbones={"llada-tiny": (1,), "dream-tiny": (1,)}, autoregressive={"llama3-tiny": (1,)}
    )
    with pytest.raises(InputError, match="llada-tiny, dream-tiny"):
        built(params)

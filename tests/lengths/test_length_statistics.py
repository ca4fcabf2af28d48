import pytest

from entropy_valley.errors import InputError
from entropy_valley.lengths import statistics as fitting
from entropy_valley.lengths.statistics import confidence_curve


def test_a_longer_pair_counts_less_and_its_variance_too():
    # By hand: weights 1/|x| at (1, 2), (1, 4), (4, 8): the line through the mean 3 at 1 and 8 at 4; squares 1 + 1 + 0.
    line = fitting.length_line([(1, 1), (1, 3), (4, 7), (0, 9)])
    assert (line["intercept"], line["slope"]) == pytest.approx((4 / 3, 5 / 3))
    assert (line["variance"], line["pairs"]) == (pytest.approx(2.0), 3)


def test_sources_of_one_length_have_a_ratio_and_no_line():
    assert fitting.length_line([(4, 3), (4, 5)]) | {"variance": 0} == {
        "intercept": 0.0,
        "slope": 1.25,
        "variance": 0,
        "pairs": 2,
    }
    with pytest.raises(InputError, match="no training pair"):
        fitting.length_line([(0, 1)])


TRUE = (0.7, 1.2, 0.5, 0.05, 0.2)


def test_the_bias_curve_is_found_again():
    points = [(length, confidence_curve(length, *TRUE)) for length in fitting.LENGTHS for _ in range(3)]
    fitted = fitting.confidence_bias(points)
    assert fitted["points"][0] == {"length": 1, "mean": pytest.approx(confidence_curve(1, *TRUE)), "canvases": 3}
    for length in fitting.LENGTHS:
        confidence = confidence_curve(length, *(fitted[name] for name in "abcde"))
        assert confidence == pytest.approx(confidence_curve(length, *TRUE), abs=1e-3)


def test_a_length_counts_by_the_root_of_its_canvases():
    """One canvas far off the curve moves it less than a hundred that are."""
    exact = [(length, confidence_curve(length, *TRUE)) for length in fitting.LENGTHS]
    off, many = [*exact[:-1], (128, 0.9)], [*exact[:-1], *[(128, 0.9)] * 100]
    curves = [fitting.confidence_bias(points) for points in (off, many)]
    at_the_end = [confidence_curve(128, *(curve[name] for name in "abcde")) for curve in curves]
    assert abs(at_the_end[1] - 0.9) < abs(at_the_end[0] - 0.9)


def test_no_parameter_is_negative_and_so_no_bias():
    rising = fitting.confidence_bias([(length, length / 200) for length in fitting.LENGTHS])
    assert min(rising[name] for name in "abcde") >= 0
    assert confidence_curve(500, *(rising[name] for name in "abcde")) > 0


def test_too_few_lengths_for_five_parameters():
    with pytest.raises(InputError, match="confidences at 4 lengths, the bias curve has five parameters"):
        fitting.confidence_bias([(length, 0.5) for length in (1, 2, 4, 6, 6)])


def by_words(text, add_special_tokens, split_special_tokens):
    assert split_special_tokens and not add_special_tokens
    return {"input_ids": text.split()}


def test_ratios_by_hand():
    pairs = [{"source": "a b", "target": "a"}, {"source": "a", "target": "a b c"}, {"source": "a b", "target": "a b"}]
    percentiles = {"p10": 0.6, "p30": 0.8, "p50": 1.0, "p70": 1.8, "p90": 2.6}
    ratios = fitting.length_ratios([*pairs, {"source": " ", "target": "a"}], by_words)  # no tokens, no ratio
    assert ratios == pytest.approx({"median": 1.0, "mean": 1.5, "pairs": 3, **percentiles})
    with pytest.raises(InputError, match="no training pair has a source"):
        fitting.length_ratios([{"source": "", "target": "a"}], by_words)

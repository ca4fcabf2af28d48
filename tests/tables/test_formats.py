import math

import pytest

from entropy_valley.experiment.tables import formats


def test_closure():
    assert formats.closure(0.649, 0.074, 3, 3) == "64.9 ± 7.4%"
    assert formats.closure(-0.5, math.nan, 1, 1) == "−50.0%"
    assert formats.closure(0.649, 0.074, 2, 3) == "64.9 ± 7.4% (2 of 3 runs)"
    assert formats.closure(math.nan, math.nan, 0, 3) == "n/a"


@pytest.mark.parametrize(("p", "text"), [(0.0, "< 0.0002"), (0.0002, "0.0002"), (0.091, "0.0910"), (1.0, "1.0000")])
def test_a_p_of_zero_is_less_than_one_resample_a_side(p, text):
    """The paper's two-sided p of 10,000 resamples is < 2 × 10⁻⁴, its one-sided p < 10⁻⁴."""
    assert formats.p_value(p, 10_000) == text
    assert formats.p_value(0.0, 10_000, sides=1) == "< 0.0001"


@pytest.mark.parametrize(("p", "text"), [(2e-5, "2.0e−05"), (9e-5, "9.0e−05"), (1e-4, "0.0001"), (0.0, "< 2e−05")])
def test_many_resamples_give_a_p_that_four_decimals_would_print_as_zero(p, text):
    assert formats.p_value(p, 100_000) == text


def test_what_is_printed_as_zero_has_no_sign():
    assert formats.signed(-0.00002, 4) == formats.signed(0.0, 4) == formats.number(-0.00002, 4) == "0.0000"
    assert formats.percent(-0.0004, math.nan) == "0.0%"

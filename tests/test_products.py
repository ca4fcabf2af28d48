"""Products of float32 matrices on a CPU: how exact they are, and what a row depends on."""

import pytest
import torch
from torch.nn.functional import linear

from entropy_valley.model.decoder import FULL_KERNEL
from entropy_valley.training.processes import float32_products


def test_float32_products_are_float32():
    """With bfloat16 factors the error is 2e-3. Sums of K float32 terms: at most K · 2^-24, here 3e-5, usually its root.

    A CPU without such instructions is told by the setting.
    """
    random = torch.Generator().manual_seed(1)
    one, other = (torch.randn(512, 512, dtype=torch.float64, generator=random) for _ in range(2))
    before, exact = torch.get_float32_matmul_precision(), one @ other
    with float32_products("cpu"):
        assert torch.get_float32_matmul_precision() == "highest"
        product = one.float() @ other.float()
    assert torch.get_float32_matmul_precision() == before
    assert (product - exact).norm() / exact.norm() < 1e-5


# (inputs, outputs) of the demo's layers and LM head, and of the tests' tiny models: MKL has another path for few rows,
# and which are few depends on the inputs.
SHAPES = [(32, 64), (64, 32), (128, 128), (128, 384), (384, 128), (128, 2560)]


@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
def test_a_row_has_the_same_bits_in_any_product(inputs, outputs):
    random = torch.Generator().manual_seed(1)
    weight, states = (torch.randn(count, inputs, generator=random) for count in (outputs, 300))
    together = linear(states, weight)
    for rows in (*range(FULL_KERNEL, 60), 128, 255, 257):
        for first in (0, 7):
            part = slice(first, first + rows)
            assert torch.equal(linear(states[part], weight), together[part]), (rows, first)

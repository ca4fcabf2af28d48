"""What only a GPU can answer: `pytest -m gpu`. `entropy-valley check --thorough` asks more."""

import pytest
import torch

from entropy_valley.decoding.head import whole_sums
from entropy_valley.model import attention

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


def test_a_product_in_bfloat16_may_keep_its_sums_whole():
    one, other = torch.randn(2, 512, 4096, device="cuda").bfloat16()
    with whole_sums():
        torch.testing.assert_close((one @ other.T).double(), one.double() @ other.double().T, atol=0.1, rtol=2**-7)


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_attends_as_scaled_dot_products(causal, monkeypatch):
    states, segments = torch.randn(3, 152, 8, 64, device="cuda").bfloat16(), attention.Segments(*2 * [(17, 5, 130)])
    kernel = attention.attend(segments, 0, *states, causal)
    monkeypatch.setattr(attention, "has_kernel", lambda query: False)
    plain = attention.attend(segments, 0, *states, causal)
    torch.testing.assert_close(kernel, plain, atol=0.02, rtol=0.02)

"""The reveal orders under the names that tables print."""

from __future__ import annotations

from entropy_valley.analysis.order_sweep import RevealOrder

LABELS = {
    "med": "MED",
    "sig_first": "SIG-first",
    "reverse_sig": "Reverse-SIG",
    "hybrid": "Hybrid MED→SIG",
    "entropy_weighted_sig": "Entropy-weighted SIG",
    "left_to_right": "Strict L2R",
    "random": "Random",
}
_UNSAID = {"seed"}  # settings that make no other kind of order


def order_label(name: str, order: RevealOrder) -> str:
    """``Hybrid MED→SIG, p = 0.25``: the order and its settings; an order that is not ours by its name in the config."""
    label = LABELS.get(order.order)
    settings = [f"{key} = {value}" for key, value in sorted(order.settings.items()) if key not in _UNSAID]
    return ", ".join([label, *settings]) if label else name

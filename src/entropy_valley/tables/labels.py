"""The names that tables and figures print: length methods in the paper's order, reveal orders, directions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MethodNames:
    """A method's printed names; an upper bound uses the reference and is never the best."""

    label: str
    short: str
    upper_bound: bool = False


METHODS = {
    "oracle": MethodNames("Oracle length", "Oracle", upper_bound=True),
    "ratio": MethodNames("Fixed ratio", "Ratio"),
    "ratio_eos": MethodNames("Fixed ratio + EOS slot", "Ratio + EOS"),
    "ev": MethodNames("Entropy-Valley", "EV"),
    "ev_narrow": MethodNames("EV, narrow grid", "EV narrow"),
    "ev_medium": MethodNames("EV, medium grid", "EV medium"),
    "ev_wide": MethodNames("EV, wide grid", "EV wide"),
    "ev_full": MethodNames("EV, full grid", "EV full"),
    "ev_extra": MethodNames("EV, extra grid", "EV extra"),
    "ev_sum": MethodNames("EV, summed entropy", "EV sum"),
    "ev_normalised": MethodNames("EV, mean entropy / log L", "EV / log L"),
    "ev_median": MethodNames("EV, median entropy", "EV median"),
    "adaptive_ev": MethodNames("Adaptive EV", "Adaptive EV"),
    "smartcrop_style": MethodNames("SmartCrop-style", "SmartCrop-style"),
    "lr_style": MethodNames("LR-style", "LR-style"),
    "cal": MethodNames("CAL", "CAL"),
    "ev_calibrated": MethodNames("Calibrated EV", "Calibrated EV"),
    "ev_prior": MethodNames("EV with a length prior", "EV prior"),
    "ev_line": MethodNames("EV along the length line", "EV line"),
    "ev_line_4": MethodNames("EV along the length line, K = 4", "EV line 4"),
    "ev_line_5": MethodNames("EV along the length line, K = 5", "EV line 5"),
    "length_line": MethodNames("Length line alone", "Line"),
    "ev_line_mode": MethodNames("Mode of the line's prior alone", "Mode"),
    "ev_line_4_no_prior": MethodNames("EV along the length line, K = 4, no prior", "EV line 4, λ = 0"),
    "ev_line_5_no_prior": MethodNames("EV along the length line, K = 5, no prior", "EV line 5, λ = 0"),
    "ev_line_7_no_prior": MethodNames("EV along the length line, no prior", "EV line, λ = 0"),
    "ev_line_4_unshifted": MethodNames("EV along the length line, K = 4, prior on the line", "EV line 4, δ = 0"),
    "ev_line_7_unshifted": MethodNames("EV along the length line, prior on the line", "EV line, δ = 0"),
    "neighbours": MethodNames("Decode five neighbours", "Neighbours"),
    "neighbours_reveal": MethodNames("Decode five neighbours, scored as revealed", "Neighbours, reveal"),
    "ev_rerank": MethodNames("EV, two candidates reranked", "EV rerank"),
    "length_head": MethodNames("Length head", "Length head"),
    "length_head_beam5": MethodNames("Length head, beam 5", "Length head 5"),
    "daedal": MethodNames("DAEDAL", "DAEDAL"),
    "daedal_own": MethodNames("DAEDAL, own defaults", "DAEDAL own"),
    "eos_probe": MethodNames("EOS probe", "EOS probe"),
    "partial_unmask": MethodNames("Partial unmask", "Partial unmask"),
}
RISING = ("ratio", "ev", "oracle")  # the paper's three, as their scores are expected to rise

ORDERS = {
    "med": "MED",
    "sig_first": "SIG-first",
    "reverse_sig": "Reverse-SIG",
    "hybrid": "Hybrid MED→SIG",
    "entropy_weighted_sig": "Entropy-weighted SIG",
    "left_to_right": "Strict L2R",
    "oracle_anchor": "Oracle anchors, then MED",
    "random": "Random",
}
_UNSAID = {"seed"}  # settings that make no other kind of order


def method(name: str) -> MethodNames:
    """The printed names of a method: ``beam4`` is a beam search, any other not listed goes by its own name."""
    beam = re.fullmatch(r"beam(\d+)", name)
    return METHODS.get(name) or (
        MethodNames(f"Beam search, beam {beam[1]}", "Beam") if beam else MethodNames(name, name)
    )


def closure_title(baseline: str) -> str:
    """The title of a column of gap closures; that over Fixed Ratio, the paper's, goes without its name."""
    return "Gap closure" if baseline == "ratio" else f"Closure over {method(baseline).short}"


def ordered(names: Iterable[str]) -> list[str]:
    """Distinct methods, the paper's first and in its order, then the others as they come."""
    distinct = dict.fromkeys(names)
    return [name for name in METHODS if name in distinct] + [name for name in distinct if name not in METHODS]


def order_label(name: str, order: str, settings: Mapping[str, Any]) -> str:
    """``Hybrid MED→SIG, p = 0.25``: the order and its settings; an order that is not ours by its name in the config."""
    listed = [f"{key} = {value}" for key, value in sorted(settings.items()) if key not in _UNSAID]
    return ", ".join([ORDERS[order], *listed]) if order in ORDERS else name


def direction(name: str) -> str:
    """``en-zh`` as tables print it: En→Zh."""
    return "→".join(code.capitalize() for code in name.split("-"))

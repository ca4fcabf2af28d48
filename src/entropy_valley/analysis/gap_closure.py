"""Gap closure: which share of Oracle's lead over a fixed ratio a method recovers, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from entropy_valley.late import numpy as np

# The methods over which a share is given, and the prefix of its columns. Fixed Ratio has no slot for the EOS, as in the
# paper; with EV's it is the fair baseline.
BASELINES = {"ratio": "gap_closure", "ratio_eos": "gap_closure_eos"}
RESOLUTION = 1e-9  # a lead this small against the scores themselves is rounding, not a gap


def gap_closures(method: Sequence[float], ratio: Sequence[float], oracle: Sequence[float]) -> np.ndarray:
    """(method - Ratio) / (Oracle - Ratio) of each run, a share (1 is all of the gap), shape (runs,).

    A run whose Oracle does not lead its Ratio has no gap to close: its value is NaN, never a huge number.
    """
    method, ratio, oracle = (np.asarray(values, dtype=float) for values in (method, ratio, oracle))
    gap = oracle - ratio
    open_gap = gap > RESOLUTION * np.maximum(np.abs(oracle), np.abs(ratio))
    return np.divide(method - ratio, gap, out=np.full(gap.shape, np.nan), where=open_gap)


def gap_closure(
    method: Sequence[float], ratio: Sequence[float], oracle: Sequence[float], prefix: str = "gap_closure"
) -> dict[str, float]:
    """``gap_closure_mean`` and ``gap_closure_std`` (sample) over the runs that have a gap; NaN where too few have one.

    ``gap_closure_runs`` is their number. Seeds are runs, never more sentences of one run.
    """
    closures = gap_closures(method, ratio, oracle)
    counted = closures[~np.isnan(closures)]
    aggregated = {"mean": mean(counted), "std": sample_std(counted), "runs": len(counted)}
    return {f"{prefix}_{name}": value for name, value in aggregated.items()}


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN for no values."""
    return float(np.mean(values)) if len(values) else float("nan")


def sample_std(values: Sequence[float]) -> float:
    """Standard deviation with n - 1 in the denominator; NaN for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")

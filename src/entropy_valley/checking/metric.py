"""COMET on the device: a tiny random estimator in the format of the released ones."""

from __future__ import annotations

from pathlib import Path

from entropy_valley.checking import tiny
from entropy_valley.checking.line import CheckError


def comet(folder: Path, device: str) -> str:
    """Loaded from its checkpoint, it scores on the device as on a CPU."""
    from entropy_valley.demo import toy_comet
    from entropy_valley.demo.settings import Estimator
    from entropy_valley.scoring.comet import unpadded_scores
    from entropy_valley.scoring.comet_checkpoint import load

    size = Estimator(seed=1, steps=1, width=32, vocabulary=300)
    texts = [row[side] for row in tiny.ROWS for side in ("source", "target")]
    folder.mkdir(parents=True, exist_ok=True)
    model = toy_comet.new_model(folder, toy_comet.train_tokenizer(texts, size), size)
    checkpoint = toy_comet.write_checkpoint(model, folder)
    segments = [(row["source"], row["source"], row["target"]) for row in tiny.ROWS]
    there, here = (dict(unpadded_scores(load(checkpoint, place), segments)) for place in (device, "cpu"))
    off = max(abs(there[one] - here[one]) for one in segments)
    said = f"{len(segments)} scores, at most {off:.1e} from a CPU's"
    if not off < 1e-3:
        raise CheckError(said)
    return said

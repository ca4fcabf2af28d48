"""Names of finished work in the store: equal keys, equal results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.revisions import DECODING, GENERATION, LENGTH_HEAD

if TYPE_CHECKING:
    from entropy_valley.engine.queue import Canvas


def probe_key(checkpoint: str, numerics: str, prompt: Sequence[int], length: int) -> str:
    """Names the reading of an all-mask canvas."""
    return files.digest(["probe", DECODING, checkpoint, numerics, list(prompt), length])


def sig_key(checkpoint: str, numerics: str, prompt: Sequence[int], sourceless: Sequence[int], length: int) -> str:
    """Names the reading of an all-mask canvas that has the SIG of its slots too."""
    return files.digest(["sig", DECODING, checkpoint, numerics, list(prompt), list(sourceless), length])


def prediction_key(checkpoint: str, numerics: str, prompt: Sequence[int], head: str) -> str:
    """Names what a length head, known by its digest, says of a prompt."""
    return files.digest(["length head", DECODING, LENGTH_HEAD, checkpoint, numerics, list(prompt), head])


def decode_key(checkpoint: str, numerics: str, canvas: Canvas, order: str, settings: Mapping[str, Any]) -> str:
    """Names a canvas that a reveal order has decoded.

    The step budget T is not in it: for L ≤ T all T reveal one slot in each of L steps, and are one decode.
    """
    parts = [list(canvas.prompt), canvas.sourceless and list(canvas.sourceless), canvas.length, list(canvas.counts)]
    return files.digest(["decode", DECODING, checkpoint, numerics, *parts, order, dict(settings)])


def variable_length_key(
    checkpoint: str, numerics: str, prompt: Sequence[int], length: int, decoder: str, settings: Mapping[str, Any]
) -> str:
    """Names a canvas that a variable-length decoder has denoised, from so many masks on."""
    parts = [list(prompt), length, decoder, dict(settings)]
    return files.digest(["filling", DECODING, checkpoint, numerics, *parts])


def beam_key(
    checkpoint: str, numerics: str, prompt: Sequence[int], beams: int, length_penalty: float, limit: int
) -> str:
    """Names the translation that a beam search of at most ``limit`` tokens finds."""
    return files.digest(["beam", GENERATION, checkpoint, numerics, list(prompt), beams, length_penalty, limit])

"""What a backbone's context leaves for a canvas."""

from __future__ import annotations

from entropy_valley.errors import InputError

SHORTEST = 2  # slots: one of content and the EOS's


def room_behind(prompt_tokens: int, context: int) -> int:
    """The slots that a context leaves behind a prompt, at least the shortest canvas's.

    :func:`check_context` says what is too long.
    """
    return max(SHORTEST, context - prompt_tokens)


def check_context(place: object, sentence: object, prompt_tokens: int, slots: int, context: int) -> None:
    """Raise InputError if a prompt of so many tokens and a canvas of so many slots do not fit the context."""
    total = prompt_tokens + slots
    if total > context:
        raise InputError(
            place,
            f"sentence {sentence!r}: prompt {prompt_tokens} + canvas {slots} = {total} tokens, "
            f"but the backbone's context is {context}",
            "Split or drop the sentence, or choose smaller ratios.",
        )

"""Dream-Instruct (Dream-org/Dream-v0-Instruct-7B): Dream's tensors, computation and vocabulary, tuned on chats.

``chat`` is Qwen2.5's template, which its tokenizer keeps, for one user message, with the default system message. A
turn, and so a translation, ends with ``<|im_end|>``; the EOS is still ``<|endoftext|>`` (id 151643), as in its
``generation_config.json``.
"""

from __future__ import annotations

import dataclasses

from entropy_valley.backbone.families.dream import BASE, DREAM

DREAM_INSTRUCT = dataclasses.replace(
    DREAM,
    name="dream_instruct",
    chat=(
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\n{prompt}<|im_end|>\n"
        "<|im_start|>assistant\n"
    ),
    chat_tokens=("<|im_start|>", "<|im_end|>"),
    releases=(
        dataclasses.replace(
            BASE,
            repository="Dream-org/Dream-v0-Instruct-7B",
            revision="05334cb9faaf763692dcf9d8737c642be2b2a6ae",
        ),
    ),
)

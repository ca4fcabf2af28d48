from __future__ import annotations

from tiny_checkpoints import backbone, checkpoints, llada, one_thread  # noqa: F401 - fixtures

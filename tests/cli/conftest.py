from __future__ import annotations

from tiny_checkpoints import checkpoints, one_thread  # noqa: F401 - fixtures

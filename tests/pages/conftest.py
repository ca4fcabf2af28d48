from __future__ import annotations

from human_evaluation.conftest import filled, made  # noqa: F401 - fixtures

"""How long tasks take on several GPUs, or on the cores of a machine without."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from entropy_valley.forecast.tasks import Task


def wall_clock(tasks: Mapping[str, Task], seconds: Callable[[Task], float], slots: int, gpus: bool) -> float:
    """Seconds until all tasks are done, if each begins as soon as what it needs is there and ``slots`` are free: GPUs,
    or cores, one for each job. Tasks without a GPU do not wait for one. A task that wants more GPUs than there are
    takes all of them, for longer.
    """
    waiting = {key: {need for need in task.needs if need in tasks} for key, task in tasks.items()}
    followers: dict[str, list[str]] = {}
    for key, needs in waiting.items():
        for need in needs:
            followers.setdefault(need, []).append(key)
    ready = [key for key, needs in waiting.items() if not needs]
    running: list[tuple[float, str, int]] = []
    now, free = 0.0, slots
    while ready or running:
        held = []
        for key in ready:
            wanted = tasks[key].gpus if gpus else 1
            took = min(wanted, slots)
            if took > free:
                held.append(key)
                continue
            free -= took
            heapq.heappush(running, (now + seconds(tasks[key]) * max(1, wanted) / max(1, took), key, took))
        now, done, took = heapq.heappop(running)
        free, ready = free + took, held
        for key in followers.get(done, []):
            waiting[key].discard(done)
            if not waiting[key]:
                ready.append(key)
    return now

"""All that is asked of a run's model, in one job that loads it once and fills the store.

The jobs of the cells take their results from there. A request has the spec of such a job, and both make the same work
of it, so they cannot disagree on a key.

First come the fits that length methods use. Then one stream of passes has all canvases that are only to be read: the
probes of all methods, diagnostics and test sets. Then each reveal order has a stream, for all methods, test sets and
step budgets; variable-length decoders join the first.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.canvas.diagnostics import read_places, reference_places
from entropy_valley.canvas.reassignment import reassigned_rows
from entropy_valley.canvas.selection import to_choose
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.canvas.training_pairs import length_head, length_statistics
from entropy_valley.decoding.asked import REASSIGNED, Asked, Shard
from entropy_valley.decoding.decode_job import read_canvases
from entropy_valley.decoding.denoising import Denoising
from entropy_valley.decoding.pipeline import Pipeline, Row
from entropy_valley.decoding.prompt_cache import refresh_of
from entropy_valley.engine.job import ROW
from entropy_valley.engine.probe import requests as probes
from entropy_valley.engine.probe import sig_requests
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.engine.engine import Engine
    from entropy_valley.engine.job import Job
    from entropy_valley.engine.requests import Request, Runner, Work
    from entropy_valley.store import Store

Named = tuple[Any, "Work"]


class Inference:
    """Computes what the requests ask and the store has not, on the model of ``job``, which has no test set of its own.

    ``statistics`` and ``head`` are files of the run, for length methods that use them and where no request is for
    them. Raises InputError for a request of another model. ``failures`` has, by its label, the error of each request
    that cannot be answered: its own job will end with the same, and it keeps no other from being answered.
    """

    def __init__(
        self,
        job: Job,
        requests: Sequence[Asked],
        shard: Shard | None = None,
        statistics: Path | None = None,
        head: Path | None = None,
    ) -> None:
        for one in (part for request in requests for part in (request, *request.chosen())):
            job.asked(one.spec)  # refuses another model's
        self._root, self._requests, self._shard = job, requests, shard or Shard()
        self._statistics, self._head = LengthStatistics.given(statistics), head
        self._testsets: dict[Path, Job] = {}
        self._rows: dict[str, dict[int, Row]] = {}  # of the requests for canvases, by place
        self.failures: dict[str, Exception] = {}

    def run(self, statistics_store: Store) -> None:
        """Do all that can be done; the probes of training pairs have a store of their own."""
        wanted = {one.key: one for request in self._requests for one in request.chosen()}
        with tempfile.TemporaryDirectory() as folder:
            self._fit(statistics_store, Path(folder))
            self._read(list(wanted.values()))
        for request in wanted.values():
            if request.rule == REASSIGNED:
                self._reassign(request)
        self._decode()

    def _fit(self, statistics_store: Store, folder: Path) -> None:
        """The length statistics and the length head that are asked for; a file in ``folder`` has the latter."""
        for request in self._of("length_statistics"):
            with self._failing(request):
                job = self._job(request, statistics_store)
                self._statistics = LengthStatistics.of(length_statistics(job), request.label)
        for request in self._of("length_head"):
            with self._failing(request):
                trained, self._head = length_head(self._job(request), request.dev), folder / "head.safetensors"
                self._head.write_bytes(trained.weights)

    def _read(self, wanted: Sequence[Asked]) -> None:
        """Choose canvases and read those of the diagnostics, in one stream."""
        runner = self._runner("probe")
        # Ratios are dealt between all sentences: every shard chooses the canvases that they come from for all.
        dealt = {one.canvases.key for one in wanted if one.rule == REASSIGNED and isinstance(one.canvases, Asked)}
        works = [work for one in wanted if one.rule == "canvas" for work in self._choosing(runner, one, dealt)]
        works += [work for one in self._of("valley", "sig_concentration") for work in self._reading(one)]
        for name, row in runner.run(works):
            if name and row:
                key, place = name
                self._rows[key][place] = row

    def _choosing(self, runner: Runner, request: Asked, dealt: set[str]) -> list[Named]:
        """The work on each sentence of this shard, or of all, named by the request's key and the sentence's place."""
        with self._failing(request):
            job = self._job(request)
            places = [place for place in range(len(job.rows)) if request.key in dealt or self._shard.has(place)]
            method, sentences = to_choose(job, self._statistics, self._head, places)
            pipeline, self._rows[request.key] = Pipeline(runner, job.inputs, refresh_of(job.spec)), {}
            return [
                ((request.key, place), self._guarded(request, pipeline.choosing(method, place, one, {})))
                for place, one in sentences.items()
            ]
        return []

    def _reading(self, request: Asked) -> list[Named]:
        """The work on each canvas that a diagnostic of the test set reads."""
        with self._failing(request):
            job, sig = self._job(request), request.rule == "sig_concentration"
            asked = reference_places(job) if sig else read_places(job)
            mine = [(place, length) for place, length in asked if self._shard.has(place)]
            wanted = sig_requests(job, mine, request.spec["sig"]) if sig else probes(job, mine)
            return [(None, _only(probe)) for probe in wanted]
        return []

    def _reassign(self, request: Asked) -> None:
        with self._failing(request):
            job = self._job(request)
            rows = self._canvases(request, job)
            if rows is not None:
                lengths = [rows[place]["length"] for place in range(len(job.rows))]
                self._rows[request.key] = dict(enumerate(reassigned_rows(job, lengths)))

    def _decode(self) -> None:
        """A stream for each reveal order. A user's own order or decoder may fail: it shares none."""
        streams: defaultdict[str | None, list[tuple[Asked, Job, Denoising]]] = defaultdict(list)
        for request in self._of("decode"):
            with self._failing(request):
                denoising = Denoising.of(request.spec)
                part, name = (request, self._job(request), denoising), [denoising.name, denoising.settings]
                streams[files.canonical(name) if denoising.order or denoising.is_own else None].append(part)
        variable = streams.pop(None, [])
        ours = next((name for name, parts in streams.items() if not parts[0][-1].is_own), None)
        for parts in ([*streams.pop(ours, []), *variable], *streams.values()):
            alone = [request for request, _, denoising in parts if denoising.is_own]
            with self._failing(*alone) if alone else contextlib.nullcontext():
                runner = self._runner("decode")
                works = [work for part in parts for work in self._denoising(runner, *part)]
                deque(runner.run(works, parts[0][-1].order if parts else None), maxlen=0)

    def _denoising(self, runner: Runner, request: Asked, job: Job, denoising: Denoising) -> list[Named]:
        with self._failing(request):
            rows, pipeline = self._canvases(request, job) or {}, Pipeline(runner, job.inputs, refresh_of(job.spec))
            return [
                (None, self._guarded(request, pipeline.denoising(place, row, denoising, {})))
                for place, row in rows.items()
                if self._shard.has(place)
            ]
        return []

    def _canvases(self, request: Asked, job: Job) -> dict[int, Row] | None:
        """The rows that a request decodes or reassigns; None where they could not be chosen."""
        if isinstance(request.canvases, Path):
            return dict(enumerate(read_canvases(request.canvases, job.rows)))
        return None if request.canvases.label in self.failures else self._rows.get(request.canvases.key)

    def _of(self, *rules: str) -> Iterator[Asked]:
        return (request for request in self._requests if request.rule in rules)

    def _job(self, request: Asked, store: Store | None = None) -> Job:
        """The job of a request; those on one test set share its prompts."""
        if request.testset not in self._testsets:
            rows = files.read_jsonl(request.testset, ROW)
            self._testsets[request.testset] = self._root.on(rows, request.testset)
        on = self._testsets[request.testset]
        return on.asked(request.spec, store)

    def _runner(self, bar: str) -> Runner:
        return replace(self._root.runner(bar), engine=lambda missing: self._engine())

    def _engine(self) -> Engine:
        """On the model, once it has read a few sentences of each test set as the job does."""
        first, *_ = [job for job in self._testsets.values() if job.backbone]
        return first.engine

    def _guarded(self, request: Asked, work: Work) -> Work:
        """The same work, unless its request has failed; an error in it, be it of a user's own method, is its request's
        alone."""
        if request.label in self.failures:
            return None
        try:
            return (yield from work)
        except Exception as error:
            self.failures.setdefault(request.label, error)
            return None

    @contextlib.contextmanager
    def _failing(self, *requests: Asked) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            for request in requests:
                self.failures.setdefault(request.label, error)


def _only(request: Request) -> Work:
    return (yield [request])

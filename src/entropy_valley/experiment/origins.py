"""What many runs are made from: pairs, test sets and their counts, checkpoints, COMET."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from entropy_valley.experiment import paths
from entropy_valley.experiment.matrix import DEV
from entropy_valley.experiment.params import corpora, jobs
from entropy_valley.experiment.result import Result, once
from entropy_valley.experiment.schema import Experiment


class Origins:
    """Those results of a config, each once."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.root = experiment, experiment.results
        self.found: dict[tuple[Any, ...], Any] = {}

    def backbone(self, name: str) -> Result:
        """A checkpoint that is pre-trained here, or the manifest of another; variants share it."""
        origin = paths.checkpoint_of(self.experiment, name)
        return self._pretrained(origin) if self.experiment.backbones[origin].pretraining else self._fetched(origin)

    @once
    def _fetched(self, name: str) -> Result:
        folder, spec, log = f"{self.root}/backbones", self._params(jobs.hub, name), self._log("fetch_backbone", name)
        weights = paths.backbone_folder(self.experiment, name)
        return Result("fetch_backbone", {"backbone": name}, folder, (f"{name}.json",), log, spec, elsewhere=weights)

    @once
    def _pretrained(self, name: str) -> Result:
        folder, files = f"{self.root}/backbones/{name}", ("checkpoint.json", "config.json", "model.safetensors")
        read = tuple(map(self.corpus, jobs.pretraining_directions(self.experiment, name)))
        spec, log = self._params(jobs.pretraining, name), self._log("pretrain", name)
        return Result("pretrain", {"backbone": name}, folder, files, log, spec, read)

    @once
    def corpus(self, direction: str) -> Result:
        """The training and development pairs of a direction."""
        folder, files = f"{self.root}/corpus/{direction}", ("train.jsonl", "dev.jsonl", "corpus.json")
        spec, log = self._params(corpora.corpus, direction), self._log("corpus", direction)
        needs = self._downloaded(self.experiment.directions[direction].train)
        return Result("corpus", {"direction": direction}, folder, files, log, spec, needs)

    def _downloaded(self, source: str) -> tuple[Result, ...]:
        """The data set that a source is read from, if it is downloaded."""
        name = paths.dataset_of(self.experiment, source)
        return (self._dataset(name),) if name else ()

    @once
    def _dataset(self, name: str) -> Result:
        spec, log = self._params(corpora.dataset, name), self._log("fetch_dataset", name)
        folder, texts = f"{self.root}/datasets", paths.dataset_folder(self.experiment, name)
        return Result("fetch_dataset", {"dataset": name}, folder, (f"{name}.json",), log, spec, elsewhere=texts)

    @once
    def testset(self, direction: str, name: str) -> Result:
        """The pairs that are translated."""
        folder, log = f"{self.root}/corpus/{direction}/test", self._log("testset", direction, name)
        of, files = {"direction": direction}, (f"{name}.jsonl",)
        if name == DEV:
            return Result("dev_as_testset", of, folder, files, log, needs=(self.corpus(direction),))
        spec, needs = self._params(corpora.testset, direction, name), self._downloaded(name)
        return Result("testset", {**of, "testset": name}, folder, files, log, spec, needs)

    @once
    def comet(self) -> tuple[Result, ...]:
        """The COMET checkpoints that are trained or downloaded."""
        scoring = self.experiment.scoring
        trained = (self._toy_comet(),) if scoring.comet.training else ()
        return trained + tuple(map(self._downloaded_comet, paths.downloaded_comets(self.experiment)))

    def _downloaded_comet(self, name: str) -> Result:
        folder, log = f"{self.root}/checkpoints", self._log("fetch_comet", name)
        weights = paths.comet_folder(self.experiment, paths.downloaded_comets(self.experiment)[name])
        return Result("fetch_comet", {"checkpoint": name}, folder, (f"{name}.json",), log, elsewhere=weights)

    def _toy_comet(self) -> Result:
        files = ("comet.json", "hparams.yaml", "checkpoints/model.ckpt")
        read, log = tuple(map(self.corpus, self.experiment.matrix.directions)), self._log("train_comet")
        return Result("train_comet", {}, f"{self.root}/comet", files, log, self._params(jobs.comet_training), read)

    @once
    def tokens(self, direction: str, backbone: str, testset: str) -> Result:
        """The token counts of a test set under a backbone's tokenizer."""
        of = {"direction": direction, "backbone": backbone, "testset": testset}
        spec, needs = self._params(jobs.tokens, backbone), (self.backbone(backbone), self.testset(direction, testset))
        folder, log = f"{self.root}/{direction}/{backbone}/tokens", self._log("tokens", *of.values())
        return Result("tokens", of, folder, (f"{testset}.jsonl",), log, spec, needs)

    @once
    def length_ratios(self, direction: str) -> Result:
        """The ratios of lengths of a direction's training pairs under each tokenizer."""
        needs = (self.corpus(direction), *map(self.backbone, corpora.tokenizers(self.experiment, direction)))
        folder, log = f"{self.root}/corpus/{direction}", self._log("length_ratios", direction)
        spec, of = self._params(corpora.length_ratios, direction), {"direction": direction}
        return Result("length_ratios", of, folder, ("length_ratios.json",), log, spec, needs)

    @once
    def _params(self, of: Callable[..., str], *given: Any) -> Mapping[str, Any]:
        return json.loads(of(self.experiment, *given))

    def _log(self, rule: str, *parts: str) -> str:
        return f"{self.root}/logs/{rule}{'/' * bool(parts)}{'.'.join(parts)}.log"

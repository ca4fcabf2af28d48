from __future__ import annotations

import pytest

from entropy_valley.demo import grammar
from entropy_valley.demo import toy_comet as embedded_comet
from entropy_valley.demo.settings import Estimator


@pytest.fixture(scope="session")
def segments():
    """Sources, hypotheses and references of different lengths; every second hypothesis has lost its end."""
    sentences = grammar.generate(24, seed=5)
    return [(one.en, one.zh if number % 2 else one.zh[:-3], one.zh) for number, one in enumerate(sentences)]


@pytest.fixture(scope="session")
def comet_folder(tmp_path_factory, segments):
    """An untrained estimator: random weights in COMET's layout."""
    folder = tmp_path_factory.mktemp("comet")
    config = Estimator(seed=1, steps=1, width=16, layers=2, heads=2, vocabulary=300)
    tokenizer = embedded_comet.train_tokenizer((text for segment in segments for text in segment), config)
    embedded_comet.write_checkpoint(embedded_comet.new_model(folder, tokenizer, config), folder)
    return folder

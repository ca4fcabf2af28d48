import contextlib
import shutil
from itertools import islice

import pytest

from entropy_valley.experiment.demo import grammar, toy_comet
from entropy_valley.experiment.demo.settings import Estimator


@pytest.fixture(scope="session")
def segments():
    """Sources, hypotheses and references of different lengths; every second hypothesis has lost its end."""
    sentences = list(islice(grammar.stream(5), 24))
    return [(one.en, one.zh if number % 2 else one.zh[:-3], one.zh) for number, one in enumerate(sentences)]


@pytest.fixture(scope="session")
def comet_folder(tmp_path_factory, segments):
    """An untrained toy COMET: random weights in COMET's layout."""
    folder = tmp_path_factory.mktemp("comet")
    config = Estimator(seed=1, steps=1, width=16, layers=2, heads=2, vocabulary=300)
    tokenizer = toy_comet.train_tokenizer((text for segment in segments for text in segment), config)
    toy_comet.write_checkpoint(toy_comet.new_model(folder, tokenizer, config), folder)
    return folder


@pytest.fixture(scope="session")
def other_folders(tmp_path_factory, comet_folder):
    """Untrained checkpoints of COMET's other classes, small, in COMET's layout: CometKiwi's two, XCOMET."""
    from comet.models import ReferencelessRegression, UnifiedMetric, XCOMETMetric

    settings = dict(
        nr_frozen_epochs=0,
        keep_embeddings_frozen=False,
        pretrained_model=toy_comet.ENCODER,
        layer_transformation="softmax",
        layer_norm=False,
        hidden_sizes=[16],
        load_pretrained_weights=False,
        local_files_only=True,
    )
    classes = {
        "referenceless": (ReferencelessRegression, {}),
        "kiwi": (UnifiedMetric, {"input_segments": ["mt", "src"], "word_level_training": False}),
        "unified": (UnifiedMetric, {"input_segments": ["mt", "src", "ref"], "word_level_training": False}),
        "needs_reference": (UnifiedMetric, {"input_segments": ["mt", "ref"], "word_level_training": False}),
        "xcomet": (XCOMETMetric, {"encoder_model": "XLM-RoBERTa", "word_layer": 1}),
    }
    folders = {}
    for name, (kind, own) in classes.items():
        folders[name] = tmp_path_factory.mktemp("comet") / name
        shutil.copytree(comet_folder / toy_comet.ENCODER, folders[name] / toy_comet.ENCODER)
        with contextlib.chdir(folders[name]):
            toy_comet.write_checkpoint(kind(**settings, **own), folders[name])
    return folders

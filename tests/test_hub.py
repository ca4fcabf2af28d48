"""Downloads from a hub on this machine: whole, broken off, moved on, gated, pickled, spoilt, not there at all."""

import random
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from fake_hub import contents, serve
from huggingface_hub.errors import OfflineModeIsEnabled
from run_rule import run_here
from safetensors.torch import load_file, save_file

from entropy_valley import files, hub
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.pretraining import new_model, train_tokenizer
from entropy_valley.model import checkpoint
from entropy_valley.model.families import FAMILIES

OLD, NEW = "a" * 40, "b" * 40
KEY = "`backbones.mine.folder`"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The files of a LLaDA checkpoint in two shards of 13 MB: huggingface_hub saves every 10 MB."""
    folder, family = tmp_path_factory.mktemp("released"), FAMILIES["llada"]
    tokenizer = train_tokenizer(["Tap Reset now."] * 3, 300, family)
    model = new_model("llada", vocabulary=13_000, width=256, layers=1, heads=4, kv_heads=4, ffn=48, context=64, seed=1)
    checkpoint.write_checkpoint(model, family, tokenizer, folder)
    tensors = load_file(folder / "model.safetensors")
    head = "model.transformer.ff_out.weight"
    placed = {name: SHARDS[name == head] for name in tensors}
    for shard in SHARDS:
        save_file({name: tensor for name, tensor in tensors.items() if placed[name] == shard}, folder / shard)
    (folder / "model.safetensors").unlink()
    (folder / checkpoint.MANIFEST).unlink()
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def arguments(folder, revision=None, **changes):
    """Params, input, output and execution details of a job of the rule ``fetch_backbone``."""
    spec = {
        "backbone": "mine",
        "family": "llada",
        "repository": "someone/model",
        "revision": revision,
        "licence": "Licence X",
        "gated": False,
        **changes,
    }
    return spec, (), folder / "mine.json", {"folder": str(folder / "mine"), "own": False, "confirm": True}


def sizes(contents):
    return {name: len(content) for name, content in contents.items()}


class TestTheScript:
    @pytest.fixture
    def fetch(self, reach, tmp_path):
        """Fetch a backbone from a hub in this process."""

        def fetch(server, *revision, **changes):
            reach(server.url)
            run_here("fetch_backbone", *arguments(tmp_path, *revision, **changes))

        return fetch

    def test_a_whole_download(self, released, fetch, tmp_path, capsys):
        others = {"weights.bin": b"a pickle", "original/params.json": b"{}", "fp16/model.safetensors": b"again"}
        with serve({OLD: {}, NEW: released | others}) as server:
            fetch(server)
            assert server.served == sizes(released)  # each once, no pickle, and no other model in a folder
        kept = {path.name for path in (tmp_path / "mine").iterdir() if path.is_file()}
        assert kept == {*released, checkpoint.MANIFEST}
        manifest = files.read_json(tmp_path / "mine.json")
        facts = {"family": "llada", "repository": "someone/model", "revision": NEW}
        assert files.read_json(tmp_path / "mine" / checkpoint.MANIFEST) == facts
        assert manifest == checkpoint.manifest(tmp_path / "mine")
        assert manifest.items() >= facts.items()
        assert ", licence Licence X, into " in capsys.readouterr().err
        # The hub is gone by now, and the folder is looked at.
        for changes, problem in (
            ({"revision": OLD}, f"revision {NEW}, not {OLD}"),
            ({"repository": "someone/else"}, "repository someone/model, not someone/else"),
        ):
            with pytest.raises(InputError, match=f"mine: holds {problem}. Name it in the config, or move the folder."):
                fetch(server, **changes)

    def test_a_broken_download_goes_on(self, released, fetch, tmp_path):
        last = SHARDS[1]
        with serve({NEW: released}, cut={last: 12_000_000}) as server:
            with pytest.raises(InputError, match="cannot be downloaded"):
                fetch(server)
            first = server.served.copy()
            server.served.clear()
            server.cut.clear()
            fetch(server)
        assert first[SHARDS[0]] == len(released[SHARDS[0]])
        assert set(server.served) == {last} and server.served[last] <= len(released[last]) - 10**7
        assert (tmp_path / "mine" / last).read_bytes() == released[last]

    def test_two_jobs_fetch_a_checkpoint_once(self, released, fetch, tmp_path):
        with serve({NEW: released}) as server, ThreadPoolExecutor() as pool:
            with files.locked(tmp_path / "mine"):
                jobs = [pool.submit(fetch, server) for _ in range(2)]
            for job in jobs:
                job.result()
            assert server.served == sizes(released)

    def test_pickles_are_refused_before_anything_is_fetched(self, released, fetch, tmp_path):
        pickled = {"config.json": released["config.json"], "pytorch_model-00001-of-00001.bin": bytes(5000)}
        with serve({NEW: pickled}) as server:
            with pytest.raises(InputError, match=r"pickled weights only.*name the folder"):
                fetch(server)
            assert not server.served
        assert not (tmp_path / "mine").exists() and not (tmp_path / ".mine.part").exists()


def test_a_large_download_needs_agreement():
    def source(size):
        return hub.Listing("a/b", NEW, "mit", (hub.File("a.json", size, None),))

    hub.require_agreement(source(10**9), ["*.json"], agreed=True)
    hub.require_agreement(source(999_999_999), ["*.json"], agreed=False)
    with pytest.raises(InputError, match=r"a/b: .*download 1.0 GB under the licence mit.* --config confirm=yes"):
        hub.require_agreement(source(10**9), ["*.json"], agreed=False)


def fetch_here(revision, folder, patterns):
    hub.fetch(hub.listing("someone/model", revision, KEY), folder, patterns, KEY)


def test_a_spoilt_file_is_found_and_fetched_again(reach, tmp_path):
    size = 5000  # in Git LFS, so that its sha256 is known
    right = {"a.json": b"a" * size, "b.json": b"b" * size}
    with serve({NEW: right}, spoilt={"b.json"}) as server:
        reach(server.url)
        with pytest.raises(InputError, match=r"not the files of the hub: b\.json.*Try again"):
            fetch_here(NEW, tmp_path, ["*.json"])
        server.spoilt.clear()
        server.served.clear()
        fetch_here(NEW, tmp_path, ["*.json"])
        assert server.served == {"b.json": size}
    assert contents(tmp_path) == right


def test_without_a_network_it_says_what_to_do(reach, tmp_path, monkeypatch):
    reach("http://127.0.0.1:9")  # where nothing listens
    by_hand = r"hf download someone/model --local-dir model`.*backbones"
    no_connection = r"someone/model: cannot be downloaded \(no answer from http://127.0.0.1:9, or .*\)\. Try again, or "
    with pytest.raises(InputError, match=rf"{no_connection}.*{by_hand}"):
        hub.listing("someone/model", None, KEY)
    listing = hub.Listing("someone/model", NEW, "mit", (hub.File("a.json", 2, None),))
    with pytest.raises(InputError, match=no_connection):
        hub.fetch(listing, tmp_path, ["*.json"], KEY)
    offline = Mock(side_effect=OfflineModeIsEnabled("Cannot reach …"))
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", offline)
    with pytest.raises(hub.UnreachableError, match="HF_HUB_OFFLINE is set"):
        hub.listing("someone/model", None, KEY)
    with pytest.raises(InputError, match=r"127.0.0.1:9/a.zip: cannot be downloaded .*Copy it"):
        hub.archive("http://127.0.0.1:9/a.zip", tmp_path / "a.zip", "Copy it.")
    of_httpx = type("ConnectError", (type("HTTPError", (Exception,), {}),), {})  # no OSError, with huggingface_hub 1
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", Mock(side_effect=of_httpx("no route")))
    with pytest.raises(InputError, match=r"cannot be downloaded \(.*no route\)"):
        hub.listing("someone/model", None, KEY)


def test_an_archive_is_fetched_once_and_whole(reach, tmp_path):
    content = random.Random(1).randbytes(100_000)
    with serve({NEW: {"data": content}}, cut={"data": 70_000}) as server:
        reach(server.url)
        address = f"{server.url}/someone/model/resolve/{NEW}/data"
        with pytest.raises(InputError, match=r"cannot be downloaded .*70000 bytes read, 30000 more .*\. Run again"):
            hub.archive(address, tmp_path / "data", "Copy it.")
        assert not (tmp_path / "data").exists()
        server.cut.clear()
        server.served.clear()
        for _ in range(2):
            hub.archive(address, tmp_path / "data", "Copy it.")
        assert server.served["data"] == len(content)
    assert (tmp_path / "data").read_bytes() == content


def test_what_the_hub_has_not(reach, tmp_path, monkeypatch):
    gated = r"is gated, private, or does not exist, or your token .* Accept its licence .* run `hf auth login`"
    with serve({OLD: {}, NEW: {"a.json": b"{}"}}) as server:
        reach(server.url)
        for name, problem in (
            ("someone/else", r"cannot be downloaded \(404 .*Repository Not Found"),
            ("someone/private", gated),
            ("no/such/name", "not the name of a repository"),
        ):
            with pytest.raises(InputError, match=f"^{name}: {problem}"):
                hub.listing(name, None, KEY)
        assert [hub.listing("someone/model", one, KEY).commit for one in (None, OLD)] == [NEW, OLD]
        with pytest.raises(InputError, match=rf"someone/model: has no sub/\* at {NEW}"):
            fetch_here(None, tmp_path, ["sub/*"])
        server.gated = True
        with pytest.raises(InputError, match=f"^someone/model: {gated}"):
            fetch_here(None, tmp_path, ["*.json"])
        monkeypatch.setenv("HF_TOKEN", "hf_expired")
        with pytest.raises(InputError, match=r"or your token for the hub is not valid"):
            hub.listing("someone/model", None, KEY)


@pytest.mark.parametrize("name", ["sub/../../mine.json", "/mine.json"])
def test_a_name_that_leads_out_of_the_repository(name, reach):
    with serve({NEW: {name: b"{}"}}) as server:
        reach(server.url)
        with pytest.raises(InputError, match="leads out of its folder"):
            hub.listing("someone/model", None, KEY)

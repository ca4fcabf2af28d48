"""Files read by ranges from a server on this machine that loses connections."""

from __future__ import annotations

import io
import random
import socket

import pytest
import requests
from fake_hub import serve

from entropy_valley import remote
from entropy_valley.errors import InputError

COMMIT = "a" * 40
CONTENT = random.Random(1).randbytes(50_000)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(remote, "WAITS", (0,) * 4)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve({COMMIT: {"data": CONTENT}}) as hub:
        yield hub


def address(server, name="data"):
    return f"{server.url}/someone/model/resolve/{COMMIT}/{name}"


def test_any_part_of_a_file_can_be_read(server):
    file = io.BufferedReader(remote.RemoteFile(address(server), len(CONTENT)), 4096)
    draw = random.Random(2)
    for begin, size in [
        (0, 10),
        (len(CONTENT) - 5, 100),
        *((draw.randrange(50_000), draw.randrange(9000)) for _ in "123"),
    ]:
        file.seek(begin)
        assert file.read(size) == CONTENT[begin : begin + size]
    assert file.seek(-7, io.SEEK_END) == len(CONTENT) - 7 and file.read() == CONTENT[-7:]


def test_only_the_range_of_a_lost_connection_is_asked_for_again(server, monkeypatch, capsys):
    monkeypatch.setattr(remote, "BLOCK", 10_000)
    server.lost["data"] = 3
    file = remote.buffered(remote.RemoteFile(address(server), len(CONTENT)))
    assert b"".join(file.read(1_000) for _ in range(20)) == CONTENT[:20_000]
    assert server.served["data"] == 20_000 + 3 * 5_000
    assert capsys.readouterr().err.count("trying again in 0 s") == 3


def test_a_connection_that_does_not_come_back_ends_the_reading(server):
    server.lost["data"] = 100
    with pytest.raises(requests.RequestException):
        remote.RemoteFile(address(server), len(CONTENT)).read(1000)
    assert server.lost["data"] == 95  # one request and one after each wait


def test_what_waiting_does_not_change_is_not_waited_for(server, capsys):
    with pytest.raises(requests.HTTPError, match="404"):
        remote.RemoteFile(f"{server.url}/nothing", 10).read(10)
    assert not capsys.readouterr().err


def test_a_download_goes_on_where_an_earlier_one_ended(server, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "BLOCK", 8_000)
    path = tmp_path / "cache" / "archive"
    server.cut["data"] = 20_000  # no answer reaches further
    with pytest.raises(InputError, match=r"cannot be downloaded .* Copy it\."):
        remote.download(address(server), path, "Copy it.")
    assert not path.exists()
    server.cut.clear()
    server.served.clear()
    for _ in range(2):  # the second time it is there
        remote.download(address(server), path, "Copy it.")
    assert path.read_bytes() == CONTENT and list(path.parent.glob(".*.part")) == []
    assert server.served["data"] == len(CONTENT) - 16_000


def test_without_a_connection_a_download_ends_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(remote.time, "sleep", lambda seconds: pytest.fail("waits"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # nobody listens
        with pytest.raises(InputError, match=r"cannot be downloaded .* Copy it\."):
            remote.download(f"http://127.0.0.1:{free.getsockname()[1]}/archive", tmp_path / "archive", "Copy it.")

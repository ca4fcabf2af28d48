"""Jobs of a real run of Snakemake in processes forked from a warm one: ``python`` of the run hands its scripts over."""

from __future__ import annotations

import array
import json
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

LONGEST = 1 << 17  # bytes of a request: command line and environment
# Stands for `python` in the run. What is no script, as the launcher, is run by the real one.
CLIENT = """#!{python} -SE
import json, os, socket, sys

if sys.argv[1] == "-m":
    os.execv("{python}", ["{python}", *sys.argv[1:]])
asked = {{"folder": os.getcwd(), "job": sys.argv[1:], "environment": dict(os.environ)}}
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect("{place}")
socket.send_fds(server, [json.dumps(asked).encode()], [1, 2])
sys.exit(int(server.recv(16) or 1))
"""


def client(place: Path) -> str:
    return CLIENT.format(python=sys.executable, place=place)


def serve(place: Path) -> None:
    """Run what clients ask for, each in a process of its own, which dies with its client."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(place))
    listener.listen(16)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _attend(connection)
            os._exit(0)
        connection.close()


def _attend(connection: socket.socket) -> None:
    message, streams, _, _ = socket.recv_fds(connection, LONGEST, 2)
    job = os.fork()
    if job == 0:
        _run(json.loads(message), streams)
    ended = os.pidfd_open(job)
    readable, _, _ = select.select([ended, connection], [], [])
    if ended not in readable:  # the client was killed
        os.kill(job, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    connection.send(str(status).encode())


def _run(asked: dict[str, Any], streams: array.array[int]) -> None:
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
    sys.argv, status = asked["job"], 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

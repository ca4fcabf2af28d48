"""Run a command that may take TIMES the CPU time of Snakemake's own start, which is measured beside it: seconds would
be those of one machine.

    python .ci/within.py TIMES COMMAND…
"""

import os
import subprocess
import sys


def cpu_seconds(command: list[str]) -> float:
    """Of a command that succeeds, with all processes that it waits for."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


limit, command = float(sys.argv[1]), sys.argv[2:]
start = min(cpu_seconds(["snakemake", "--version"]) for _ in range(3))
times = cpu_seconds(command) / start
print(f"{times:.1f} of {limit:g} times a start of Snakemake ({start:.1f} CPU s): {' '.join(command)}", flush=True)
sys.exit(times > limit)

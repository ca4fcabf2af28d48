"""What a check is, and the checks of the installation and the device, for which torch may be missing."""

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from entropy_valley import machine
from entropy_valley.errors import InputError

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
Check = Callable[[], str]


class CheckError(Exception):
    """A check has failed. The message has the numbers and what to do."""


class SkippedError(Exception):
    """A check does not apply here. The message says why."""


@dataclass(frozen=True)
class Line:
    """The outcome of a check, and the seconds that it took."""

    name: str
    state: str
    text: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.state:8} {self.name:25} {self.text} ({self.seconds:.1f} s)"


def run(checks: Iterable[tuple[str, Check]]) -> Iterator[Line]:
    """Run each check and yield its line. An exception of any kind is a failure."""
    for name, check in checks:
        started = time.monotonic()
        try:
            state, text = OK, check()
        except SkippedError as reason:
            state, text = SKIPPED, str(reason)
        except (CheckError, InputError) as error:
            state, text = FAILED, str(error)
        except Exception as error:
            traceback.print_exception(error)
            state, text = FAILED, f"{type(error).__name__}: {error}"
        yield Line(name, state, " ".join(text.split()), time.monotonic() - started)


def report(lines: Iterable[Line]) -> list[Line]:
    """Print each line as soon as it is known; end this process with status 1 if a check has failed."""
    done = []
    for line in lines:
        print(line, flush=True)
        done.append(line)
    if any(line.state == FAILED for line in done):
        sys.exit(1)
    return done


def torch_build(wanted: str = "") -> str:
    """Torch can be imported, and is the ``wanted`` build, such as "cu126" or "cpu" ("": any)."""
    import torch

    build = f"cu{torch.version.cuda.replace('.', '')}" if torch.version.cuda else "cpu"
    if wanted and build != wanted:
        raise CheckError(f"torch {torch.__version__} is the {build} build: run `make install CUDA={wanted}`")
    return f"torch {torch.__version__}, {build} build"


def gpus(device: str = "cpu", precision: str = "float32") -> str:
    """The NVIDIA driver runs this build of torch; for ``device`` "cuda" a GPU is there that has the ``precision``.

    Nothing is computed yet: on some clusters a GPU takes one process, and the first ones are those of a training.
    """
    import torch

    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:  # torch says whether the build, the driver or the GPU is missing
        reason = str(error).strip().split("\n")[0]
        if device == "cuda":
            remedy = "start on a machine with a GPU, run `make install CUDA=BUILD`, or set `device: cpu`"
            raise CheckError(f"{reason}. docs/running.md has the builds: {remedy}") from None
        if "too old" in reason:
            raise CheckError(f"{reason}. docs/running.md has builds for older drivers") from None
        raise SkippedError(reason) from None
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    text = "; ".join(f"{gpu.name}, {machine.amount(gpu.total_memory)}, {gpu.major}.{gpu.minor}" for gpu in found)
    if device == "cuda" and precision == "bfloat16" and any(gpu.major < 8 for gpu in found):
        raise CheckError(f"{text}: a GPU older than Ampere (8.0) has no bfloat16. Set `precision: float32`")
    return text

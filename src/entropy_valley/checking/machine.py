"""The installation and the device: torch and its build, the driver, the GPUs, bfloat16, a C compiler."""

from __future__ import annotations

import importlib.metadata
import os
import shutil

from entropy_valley import driver as drivers
from entropy_valley import limits
from entropy_valley.checking.line import CheckError, SkippedError
from entropy_valley.driver import Machine

GB = 1e9


def torch_build(wanted: str = "") -> str:
    """Torch can be imported, and is the ``wanted`` build, such as "cu126" or "cpu" ("": any)."""
    import torch

    build = f"cu{torch.version.cuda.replace('.', '')}" if torch.version.cuda else "cpu"
    if wanted and build != wanted:
        raise CheckError(f"torch {torch.__version__} is the {build} build: run `make install CUDA={wanted}`")
    triton = "" if build == "cpu" else f", triton {_version('triton')}"
    return f"torch {torch.__version__}, {build} build{triton}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise CheckError(f"{package} is missing, which comes with torch: docs/install.md") from None


def driver(device: str = "") -> str:
    """The driver is new enough for the build; where the device is to be "cuda", there is a GPU that torch can use."""
    here = Machine.here()
    if device == "cuda":
        here.require_gpu()
    elif not (here.driver and here.cuda):
        raise SkippedError(str(here))
    elif drivers.too_old(here.driver, here.cuda):
        raise CheckError(f"{here.problem()}. {here}. `make install CUDA={here.advised}`")
    return str(here)


def device_memory(device: str) -> str:
    """The device is there, and torch has kernels for it."""
    import torch

    if device == "cpu":
        return f"{os.cpu_count()} cores, {memory('cpu') / GB:.1f} GB of memory, {torch.get_num_threads()} threads"
    if not torch.cuda.is_available():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        because = f"CUDA_VISIBLE_DEVICES is {hidden!r}" if hidden is not None else str(Machine.here())
        raise CheckError(f"torch finds no GPU: {because}")
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    text = "; ".join(f"{one.name}, {one.total_memory / GB:.1f} GB, {one.major}.{one.minor}" for one in found)
    _require_kernels([(one.major, one.minor) for one in found], torch.cuda.get_arch_list())
    return text


def _require_kernels(capabilities: list[tuple[int, int]], built: list[str]) -> None:
    """Raise CheckError for a GPU without kernels in this build of torch. A GPU runs code of earlier minor versions."""
    kinds = [name.split("_") for name in built if name.split("_")[-1].isdigit()]
    known = [(kind, divmod(int(number), 10)) for kind, number in kinds]
    for own in capabilities:
        # "compute" is compiled by the driver, for later GPUs too; "sm" is for GPUs of one major version.
        if not any(version <= own and (kind == "compute" or version[0] == own[0]) for kind, version in known):
            has = f"it has {', '.join(built) or 'none'}"
            raise CheckError(f"torch has no kernels for compute capability {own} ({has}); docs/install.md has builds")


def memory(device: str) -> int:
    """Bytes of the device: of its smallest GPU, or of the machine."""
    if device == "cpu":
        return limits.memory()
    import torch

    return min(torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count()))


def bfloat16(device: str) -> str:
    """A product of matrices in bfloat16 is as far from float64 as bfloat16 makes it."""
    import torch

    if device == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise CheckError("this GPU has no bfloat16: it is older than Ampere. Set `precision: float32`")
    torch.manual_seed(0)
    one, other = torch.randn(2, 256, 256, device=device).bfloat16()
    exact = one.double() @ other.double()
    off = ((one @ other).double() - exact).norm() / exact.norm()
    if not off < 2**-7:
        raise CheckError(f"a product in bfloat16 is off by {off:.2g} of its norm; {2**-8:.2g} is usual")
    return f"relative error of a product {off:.2g}"


def compiler(device: str) -> str:
    """``torch.compile`` works: one kernel then reduces the logits. Without it, nothing is decoded on a GPU."""
    from entropy_valley.decoding.kernels import require_compiler

    if device == "cpu":
        raise SkippedError("nothing is compiled on a CPU")
    require_compiler(device)
    return f"torch.compile works with {os.environ.get('CC') or shutil.which('gcc') or shutil.which('cc')}"

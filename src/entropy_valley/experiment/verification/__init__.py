"""Whether a folder of results is what follows from its texts, on this machine and by this version of the package.

:mod:`.folder`: what is read, the digests in the records, and the report. :mod:`.sets`: each row of each set, and its
scores again. :mod:`.products`: every table, figure and page made again. :mod:`.again`: sentences decoded again by the
plain algorithm.

The folder may be anybody's: nothing in it is executed. What cannot be read is a difference, and the rest is checked.
"""

import contextlib
from pathlib import Path

from entropy_valley import files, plugins
from entropy_valley.experiment.verification import again, products, sets
from entropy_valley.experiment.verification.folder import Folder, Report

__all__ = ["Folder", "Report", "verify"]


def verify(root: Path, comet: Path | None = None, sentences: int = 0, own_classes: bool = False) -> Report:
    """Check a folder of results, and decode ``sentences`` of each run again.

    ``comet`` is a checkpoint of the main metric, where the folder has none of its own. COMET and decoding run on a GPU
    where there is one. With ``own_classes`` the config may name classes of the user's own, which are imported from the
    working directory. InputError for a folder without results, and for a checkpoint that is not there.
    """
    import torch

    if comet is not None and not comet.exists():
        raise files.not_there(comet)
    report = Report()
    # A config of a stranger may name a module that is in the working directory.
    with contextlib.nullcontext() if own_classes else plugins.ours_alone():
        folder = Folder(root, report)
        folder.check(report)
        sets.check(folder, report)
        sets.check_tokens(folder, report)
        products.check(folder, report)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        sets.check_scores(folder, report, comet, device)
        # This needs the models, and minutes.
        if sentences:
            again.check(folder, report, sentences, device)
    return report

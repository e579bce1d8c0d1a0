"""`prism doctor`: what is installed, what is missing, and the line that installs it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from prism import __version__
from prism.cli._common import say

NEEDED = ("numpy", "scipy", "torch", "lightning_fabric", "safetensors", "typer", "rich")
EXTRAS = {
    "pyvista": ("pyvista", "meshes for ParaView (.vtp)"),
    "ot": ("POT", "earth mover's distance"),
    "tomli_w": ("tomli_w", "saving models"),
    "jinja2": ("jinja2", "reports"),
    "igl": ("libigl", "signed distances of meshes, thinning of templates"),
    "SimpleITK": ("SimpleITK", "label maps (NIfTI, NRRD, MHA)"),
    "skimage": ("scikit-image", "surfaces of label maps and templates"),
}


def doctor() -> None:
    """Say what is installed and what is missing.

    Versions, devices, extras, and the line that installs what is missing.
    """
    say(f"prism {__version__}, Python {platform.python_version()}, {platform.platform()}")
    absent = [name for name in NEEDED if not _told(name, name, "needed")]
    absent += [pip for _, (pip, why) in EXTRAS.items() if not _told(pip, pip, why)]
    say(f"devices: {_devices()}")
    if absent:
        say(f"doctor: {len(absent)} missing. Run: pip install {' '.join(absent)}")
    else:
        say("doctor: nothing is missing.")


def _told(name: str, distribution: str, why: str) -> bool:
    """Print a line on a package; True when it is there."""
    try:
        found = version(distribution)
    except PackageNotFoundError:
        say(f"  {name:18} missing ({why})")
        return False
    say(f"  {name:18} {found} ({why})")
    return True


def _devices() -> str:
    """CPU cores and GPUs, as torch sees them."""
    cores = f"{os.cpu_count()} CPU cores"
    try:
        import torch

        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        return f"{cores}; torch does not start: {str(error).splitlines()[0]}"
    return f"{cores}, {', '.join(names) or 'no GPU'}"

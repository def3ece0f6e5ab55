"""No input; what a cell's manifest says of the machine and the packages that it was computed with, out."""

from __future__ import annotations

import contextlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from molgraph.base.version import __version__

PACKAGES = (
    "numpy",
    "pandas",
    "scikit-learn",
    "torch",
    "rdkit",
    "lightning",
    "xgboost",
    "catboost",
    "gpytorch",
    "optuna",
)


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    found = {"molgraph": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@cache
def machine() -> dict[str, Any]:
    """What the cells ran on; not its name."""
    info, model = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    if info.is_file():
        named = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = named[0] if named else model
    return {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count(), "cpu": model}

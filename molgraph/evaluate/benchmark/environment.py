"""Describe the machine and the packages that a cell is computed with, for its manifest."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from molgraph.base.version import package_versions

PACKAGES: tuple[str, ...] = ("numpy", "pandas", "scikit-learn", "torch", "rdkit", "lightning")
PACKAGES += ("xgboost", "catboost", "gpytorch", "optuna")


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    return package_versions(PACKAGES)


@cache
def machine() -> dict[str, Any]:
    """What the cells ran on; not its name."""
    info, model = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    if info.is_file():
        named = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = named[0] if named else model
    return {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count(), "cpu": model}

"""Find the folders of the data that RDKit ships."""

from __future__ import annotations

from pathlib import Path

from rdkit import RDConfig


def contrib_dir() -> Path | None:
    """RDKit's Contrib folder (the FreeWilson data, the SA score); None where an installation lacks it."""
    return _folder(getattr(RDConfig, "RDContribDir", ""))


def data_dir() -> Path | None:
    """RDKit's Data folder (the NCI list, feature definitions); None where an installation lacks it."""
    return _folder(getattr(RDConfig, "RDDataDir", ""))


def _folder(name: str) -> Path | None:
    return Path(name) if name and Path(name).is_dir() else None

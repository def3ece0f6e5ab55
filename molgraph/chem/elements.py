"""List the symbols of the elements by atomic number."""

from __future__ import annotations

from rdkit import Chem

SYMBOLS: tuple[str, ...] = tuple(Chem.GetPeriodicTable().GetElementSymbol(z) for z in range(119))
"""From ``*``, a dummy atom, at 0, and ``H`` at 1, to ``Og`` at 118."""

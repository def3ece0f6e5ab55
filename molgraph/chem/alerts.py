"""List the structural alerts of molecules by the catalogues of RDKit (PAINS, BRENK and others)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from rdkit.Chem import FilterCatalog

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.chem.bounded import ALONE
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

CATALOGS = ("PAINS", "BRENK", "NIH", "ZINC", "CHEMBL")
USUAL = ("PAINS", "BRENK")


def alerts_of(smiles: Sequence[str], catalogs: Sequence[str] = USUAL) -> list[tuple[str, ...]]:
    """The alerts of each molecule, sorted, by RDKit's catalogues; none for one that cannot be read.

    PAINS: Baell and Holloway 2010, J. Med. Chem. 53:2719; BRENK: Brenk et al. 2008, ChemMedChem 3:435.

    Example:
        >>> alerts_of(["CCO", "O=Cc1ccccc1", "C(C"])
        [(), ('aldehyde',), ()]
    """
    for name in catalogs:
        if name not in CATALOGS:
            raise UnknownNameError(f"no catalogue of alerts is named {name!r}", hint=nearest(name, CATALOGS))
    return map_molecules(partial(_alerts, tuple(catalogs)), list(smiles), lambda *_: (), seconds=ALONE)


def _alerts(catalogs: tuple[str, ...], text: str) -> tuple[str, ...]:
    mol = parse_smiles(text).mol
    return () if mol is None else tuple(sorted({m.GetDescription() for m in _catalog(catalogs).GetMatches(mol)}))


@cache
def _catalog(names: tuple[str, ...]) -> FilterCatalog.FilterCatalog:
    params = FilterCatalog.FilterCatalogParams()
    for name in names:
        params.AddCatalog(getattr(FilterCatalog.FilterCatalogParams.FilterCatalogs, name))
    return FilterCatalog.FilterCatalog(params)

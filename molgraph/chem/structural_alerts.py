"""Find the first reason for which MOSES's filters refuse a molecule: an element, a charge, a ring size, an alert."""

from __future__ import annotations

from functools import cache

from rdkit import Chem
from rdkit.Chem import FilterCatalog as catalogs

ELEMENTS = frozenset({"C", "N", "S", "O", "F", "Cl", "Br", "H"})
LARGEST_RING = 7

#: The medicinal chemistry filters of MOSES (Polykovskiy et al. 2020), by chemistry. MOSES's patterns of furans,
#: thiophenes and anilines ask for alternating bonds, which RDKit's aromatic rings never have: they refuse nothing there
#: and are left out here.
MCF = {
    "vinyl nitrile": "C=!@[#6]-C#N",
    "vinyl sulfone": "C=!@[#6]-S(=O)=O",
    "acrylamide": "C=!@[#6;!H0]-!@C(=O)-!@[#7]",
    "primary halide": "[C;!H0;!H1]([#6])[F,Cl,Br,I]",
    "epoxide": "[#6]1-[#8]-[#6]-1",
    "isocyanate": "[#6]-N=C=O",
    "aldehyde": "[#6;!H0]=O",
    "imine": "[#6](=!@[#7;!H0])-!@[#6,#7,#8,#16]",
    "aziridine": "[#6]1-[#7]-[#6]-1",
    "hydrazine in a chain": "[#6]~!@[#7]~!@[#7]~!@[#6]",
    "azo": "[#7]=!@[#7]",
    "activated aryl halide": "[Cl,Br,I]-c(:*):[!#1;!#6]:*",
    "two sulfurs": "[#16]~[#16]",
    "three nitrogens": "[#7]~!@[#7]~!@[#7]",
    "aminal": "[#7]-!@[#6;!H0;!H1]-!@[#7]",
    "acetal": "[#6;!H0](-!@[#8])-!@[#8]",
    "three bromines": "[Br].[Br].[Br]",
    "four chlorines": "[Cl].[Cl].[Cl].[Cl]",
    "seven fluorines": "F.F.F.F.F.F.F",
}


def first_alert(mol: Chem.Mol) -> str:
    """Why MOSES's filters refuse a molecule, the first reason found; empty where it passes.

    The filters of Polykovskiy et al. 2020 (Front. Pharmacol. 11:565644): the elements C, N, S, O, F, Cl, Br, H; no
    charged atom; no ring of eight atoms or more; no medicinal chemistry filter (``MCF``); no pan-assay interference
    pattern (Baell and Holloway 2010), as RDKit's catalogue has them.

    Example:
        >>> first_alert(Chem.MolFromSmiles("CCO")), first_alert(Chem.MolFromSmiles("CC1CO1"))
        ('', 'MCF epoxide')
        >>> first_alert(Chem.MolFromSmiles("C[N+](C)(C)C")), first_alert(Chem.MolFromSmiles("C1CCCCCCC1"))
        ('charge', 'ring of 8')
    """
    for atom in mol.GetAtoms():
        if atom.GetSymbol() not in ELEMENTS:
            return f"element {atom.GetSymbol()}"
        if atom.GetFormalCharge():
            return "charge"
    largest = max(map(len, mol.GetRingInfo().AtomRings()), default=0)
    if largest > LARGEST_RING:
        return f"ring of {largest}"
    match = _catalog().GetFirstMatch(mol)
    return "" if match is None else str(match.GetDescription())


@cache
def _catalog() -> catalogs.FilterCatalog:
    """The patterns of ``MCF`` before those of PAINS."""
    catalog = catalogs.FilterCatalog()
    for name, smarts in MCF.items():
        catalog.AddEntry(catalogs.FilterCatalogEntry(f"MCF {name}", catalogs.SmartsMatcher(name, smarts, 1)))
    pains = catalogs.FilterCatalogParams(catalogs.FilterCatalogParams.FilterCatalogs.PAINS)
    source = catalogs.FilterCatalog(pains)
    for i in range(source.GetNumEntries()):
        entry = source.GetEntryWithIdx(i)
        entry.SetDescription(f"PAINS {entry.GetDescription()}")
        catalog.AddEntry(entry)
    return catalog

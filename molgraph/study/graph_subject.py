"""Get the graph network that a study looks into, a file or a name that is fitted, with molecules as it reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

from molgraph.base.errors import EmptyError, MissingOptionError, UnsupportedError
from molgraph.base.parts import read_part
from molgraph.base.registry import names
from molgraph.base.seeds import derive, generator
from molgraph.chem.smiles import parse_smiles
from molgraph.data.sources import builtin
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.study.study import Subject
from molgraph.train.method import GraphMethod


class GraphSubject(NamedTuple):
    """A fitted graph network, and rows that it reads.

    Args:
        method: fitted.
        table: n rows, standardised as the network's molecules were.
        mols: their RDKit molecules.
    """

    method: GraphMethod
    table: Table
    mols: list[Any]


def graph_subject(
    subject: Subject, *, what: str, most: int, least: int, share: float = 1.0, seed: int = 0
) -> GraphSubject:
    """The graph network that ``subject`` names, and readable rows of its data in an order by the seed.

    The name of an encoder is fitted to the table's targets in a share of those rows. A file needs no data: without any
    the molecules are those of RDKit's NCI list.

    Args:
        subject: a name or a file, and data.
        what: the study, for messages, such as ``probes``.
        most, least: rows, at most and at least.
        share: of the rows, from which a name learns.
        seed: of the draws and the fit.

    Raises:
        UnsupportedError: the model is no graph network of one column of molecules.
        EmptyError: fewer than ``least`` molecules can be read.
    """
    name = subject.model
    named = isinstance(name, str) and read_part(name).name in names("encoder")
    model = None if named else subject.fitted()
    method = subject.make() if model is None else model.method
    columns = () if model is None else model.columns_read
    if not isinstance(method, GraphMethod) or columns[1:] or (columns and columns[0][0] != "molecule"):
        words = f"{what} read the layers of a graph network of molecules, and {name} is none"
        raise UnsupportedError(words, hint="name one: -m gin, or the file of one")
    table = builtin.nci() if subject.data is None and model is not None else subject.table()
    table = standardise(table, "standard" if model is None else model.standardiser)
    texts = [str(text) for text in table.smiles]
    mols = [parse_smiles(text)[0] if fine else None for text, fine in zip(texts, table.ok, strict=True)]
    usable = [i for i, mol in enumerate(mols) if mol is not None and mol.GetNumAtoms()]
    rows = generator(seed, "rows").permutation(usable)[:most]
    if len(rows) < least:
        words = f"{what} need {least} molecules that can be read, the table has {len(rows)}"
        raise EmptyError(words, hint="give more rows")
    if model is None:
        order = generator(seed, "probe").permutation(len(rows))
        method.set_params(threads=1, seed=seed).fit(table.take(rows[order[: round(share * len(rows))]]))
    return GraphSubject(method, table.take(rows), [mol for mol in (mols[i] for i in rows) if mol is not None])


def graph_pair(
    subject: Subject, other: str, *, what: str, most: int, least: int, share: float = 1.0, seed: int = 0
) -> tuple[GraphSubject, GraphMethod]:
    """The graph network that ``subject`` names with its rows, and another that reads the same rows.

    Args:
        subject: a name or a file, and data.
        other: a name or a file; empty for another fit of the same name, by another seed.
        what, most, least, share, seed: as ``graph_subject`` takes them.

    Raises:
        MissingOptionError: a file, and no other model.
        UnsupportedError, EmptyError: as ``graph_subject``.
    """
    how: dict[str, Any] = {"what": what, "most": most, "least": least, "share": share}
    if not other and (not isinstance(subject.model, str) or read_part(subject.model).name not in names("encoder")):
        raise MissingOptionError(f"{what} compare two models", hint=f"name the other: {what}(other=b.mgm)")
    first = graph_subject(subject, **how, seed=seed)
    again = Subject(subject.data, other or subject.model, subject.columns)
    second = graph_subject(again, **how, seed=seed if other else derive(seed, "again"))
    return first, second.method

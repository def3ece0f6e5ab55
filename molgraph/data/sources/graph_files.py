"""Read the layouts of graph benchmarks (TU zip, DGCNN text) as a table of graphs with classes."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import CellError, FormatError, MismatchError, TooLargeError
from molgraph.base.table import EntityKind
from molgraph.data.graph_values import Graph
from molgraph.data.table import OK, UNREADABLE, Entities, Table

MAX_MEMBER_BYTES = 4 * 10**9
DAMAGED: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    RuntimeError,
    zipfile.BadZipFile,
    tarfile.TarError,
)


def read_tu(path: Path, name: str, target: Target) -> Table:
    """A dataset in the layout of Morris et al. 2020 (TUDataset): ``NAME_A.txt`` and its companions in one zip.

    Edges are made unique and sorted; labels of nodes, edges and classes are numbered in the order of their values.
    """
    names = ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels", "node_attributes")
    data = dict(zip(names, members(path, *(f"{name}_{word}.txt" for word in names), optional=3), strict=True))
    edges = _numbers(data["A"], np.int64)
    graph_of, classes = _column(data["graph_indicator"]) - 1, _column(data["graph_labels"])
    n_graphs, n_nodes = len(classes), len(graph_of)
    edges = edges - 1
    if len(edges) and (edges.min() < 0 or edges.max() >= n_nodes):
        raise CellError(f"{path.name} has an edge to a node that it has not ({n_nodes} nodes)")
    if (np.diff(graph_of) < 0).any() or graph_of[0] != 0 or graph_of[-1] != n_graphs - 1:
        raise FormatError(f"{path.name}: nodes do not stand graph by graph, or not for each of the {n_graphs} graphs")
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(edges[order], axis=0) != 0).any(axis=1)
    order = order[first]  # some files list each directed edge twice
    arrays = {
        "node_label": None if data["node_labels"] is None else _codes(_column(data["node_labels"])),
        "node_features": None if data["node_attributes"] is None else _numbers(data["node_attributes"], np.float32),
        "edge_label": None if data["edge_labels"] is None else _codes(_column(data["edge_labels"]))[order],
    }
    counts = np.bincount(graph_of, minlength=n_graphs)
    return classes_table(_cut(edges[order], counts, arrays), classes, target)


def read_dgcnn(path: Path, name: str, target: Target) -> Table:
    """A dataset as one text (DGCNN, GIN): the number of graphs; of each, ``nodes class``, then its nodes.

    A node's line is its tag, its number of neighbours and the neighbours; edges are made unique and sorted.
    """
    (text,) = members(path, f"{name}.txt")
    graphs: list[Graph] = []
    classes: list[int] = []
    try:
        words = np.fromstring(text or b"", dtype=np.int64, sep=" ")
        at = 1
        for _ in range(words[0]):
            n, label = words[at : at + 2].tolist()
            edges, at = _nodes(words, at + 2, n)
            graphs.append(Graph(n, edges))
            classes.append(label)
        if at != len(words):
            raise ValueError("there is more text than graphs")
    except (ValueError, IndexError, OverflowError) as error:
        raise FormatError(f"{path.name}, graph {len(graphs)}: {error or 'the text ends early'}") from None
    return classes_table(graphs, np.array(classes), target)


def _nodes(words: np.ndarray, at: int, n: int) -> tuple[np.ndarray, int]:
    """The edges of the n nodes whose lines begin at a word, and where the next graph begins."""
    near, degrees = [], []
    for _ in range(n):
        degree = int(words[at + 1])
        if degree < 0:
            raise ValueError("a node has fewer than no neighbours")
        near.append(words[at + 2 : at + 2 + degree])
        degrees.append(degree)
        at += 2 + degree
    target = np.concatenate(near).astype(np.int64) if near else np.zeros(0, np.int64)
    source = np.repeat(np.arange(n, dtype=np.int64), degrees)
    if len(source) != len(target):
        raise ValueError("the text ends early")
    if len(target) and (target.min() < 0 or target.max() >= n):
        raise ValueError("an edge to a node that is not there")
    both = np.sort(np.concatenate([source * n + target, target * n + source]))
    both = both[np.diff(both, prepend=-1) != 0]
    return np.column_stack([both // max(n, 1), both % max(n, 1)]).astype(np.int32), at


def classes_table(graphs: list[Graph], classes: np.ndarray, target: Target) -> Table:
    """Graphs with their classes, numbered in the order of their values."""
    codes = _codes(classes)
    if codes.max(initial=0) >= len(target.classes):
        raise MismatchError(f"{codes.max() + 1} classes, the card names {len(target.classes)}")
    return plain_table({"graph": graphs}, (target,), codes)


def column(kind: EntityKind, values: Any, name: str = "") -> Entities:
    """An entity column of any values; named by its kind, if not otherwise, as molecules are ``smiles``."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return Entities(name or ("smiles" if kind == "molecule" else kind), kind, array)


def plain_table(
    columns: Mapping[EntityKind, Any] | Sequence[Entities],
    targets: tuple[Target, ...],
    y: np.ndarray,
    split: np.ndarray | None = None,
    reasons: np.ndarray | None = None,
) -> Table:
    """A table of entity columns; ids are row numbers, and a row that has a reason cannot be read."""
    n = len(y)
    entities = [column(*pair) for pair in columns.items()] if isinstance(columns, Mapping) else columns
    reasons = np.full(n, "", object) if reasons is None else reasons
    ids, status = np.array([str(i) for i in range(n)], object), np.where(reasons == "", OK, UNREADABLE).astype(object)
    return Table(ids, tuple(entities), status, reasons, targets, y.reshape(n, -1).astype(np.float64), split=split)


@contextmanager
def reading(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Raise ``FormatError`` for whatever shows that a file is damaged, a reader's own ``errors`` too."""
    try:
        yield
    except (*DAMAGED, *errors) as error:
        raise FormatError(f"{path.name} cannot be read: {error}", hint="copy or download it again") from None


def members(path: Path, *names: str, optional: int = 0) -> list[bytes | None]:
    """The bytes of members of a zip file by the ends of their paths; nothing is unpacked.

    The last ``optional`` of them may be missing.
    """
    contents: list[bytes | None] = []
    with reading(path), zipfile.ZipFile(path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir() and "__MACOSX" not in info.filename]
        for i, name in enumerate(names):
            matches = [info for info in infos if PurePosixPath(info.filename).match(name)]
            if not matches and i >= len(names) - optional:
                contents.append(None)
                continue
            if len(matches) != 1:
                raise FormatError(f"{path} has {len(matches)} members named {name}, expected one")
            with archive.open(matches[0]) as stream:
                content = stream.read(MAX_MEMBER_BYTES + 1)
            if len(content) > MAX_MEMBER_BYTES:  # whatever size the archive states
                raise TooLargeError(f"{name} in {path} is larger than {MAX_MEMBER_BYTES:,} bytes")
            contents.append(content)
    return contents


def _cut(edges: np.ndarray, counts: np.ndarray, arrays: Mapping[str, np.ndarray | None]) -> list[Graph]:
    """All nodes and edges cut into graphs; edges are sorted by source, so each graph's stand together."""
    ends = np.cumsum(counts)
    starts = ends - counts
    low, high = np.searchsorted(edges[:, 0], starts), np.searchsorted(edges[:, 0], ends)
    graphs: list[Graph] = []
    for start, end, a, b in zip(starts, ends, low, high, strict=True):
        local = (edges[a:b] - start).astype(np.int32)
        if len(local) and (local.min() < 0 or local.max() >= end - start):
            raise CellError(f"graph {len(graphs)} has an edge into another graph")
        cut = {
            key: None if array is None else array[a:b] if key == "edge_label" else array[start:end]
            for key, array in arrays.items()
        }
        graphs.append(Graph(int(end - start), local, **cut))
    return graphs


def _numbers(data: bytes | None, kind: type) -> np.ndarray:
    try:
        return pd.read_csv(io.BytesIO(data or b""), header=None, skipinitialspace=True).to_numpy().astype(kind)
    except (ValueError, pd.errors.ParserError) as error:
        raise FormatError(f"a member of the archive does not hold numbers: {error}") from None


def _column(data: bytes | None) -> np.ndarray:
    return _numbers(data, np.int64)[:, 0]


def _codes(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int32)

"""Read the training corpus of a JT-VAE and cache its trees beside the checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import EmptyError, StorageError
from molgraph.base.paths import atomic_write
from molgraph.chem.fragments.junction_tree import Decomposed
from molgraph.chem.fragments.vocabulary import Vocabulary, read_corpus
from molgraph.chem.smiles import why_unreadable
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.graph_io import load_store, save_store
from molgraph.data.graph_store import GraphStore
from molgraph.data.table import Table
from molgraph.generate.network_generator import Corpus
from molgraph.generate.smiles_tokens import check_corpus
from molgraph.models.jtvae.attachments import AttachmentGraphs
from molgraph.models.jtvae.corpus import pack_trees
from molgraph.train.checkpoint import fingerprint
from molgraph.train.samples import Samples

FILE = "corpus.json"  # written last: without it the stores beside it mean nothing


class Language(NamedTuple):
    """What the network of a corpus is built from: its clusters, and the graphs of attachments between them."""

    clusters: Vocabulary
    graphs: AttachmentGraphs


def read_trees(
    table: Table, valid: Table | None, *, min_count: int = 1, workers: int | None = None, folder: Path | None = None
) -> Corpus:
    """The trees of both tables; molecules of ``valid`` with other clusters are passed over.

    Args:
        table, valid: of one column of molecules each.
        min_count, workers: as for ``read_corpus``.
        folder: keeps the corpus; where it holds the same one, that is not read again.

    Raises:
        EmptyError: no molecule can be learned from.
    """
    smiles, judged = smiles_of(table), [] if valid is None else smiles_of(valid)
    key = fingerprint(corpus=[smiles, judged], options=[min_count, MOLECULE_SPEC.featuriser])
    if folder is not None and (kept := _kept(folder, key)) is not None:
        return kept
    parses, clusters = read_corpus(smiles, min_count=min_count, workers=workers)
    if not any(parse.tree for parse in parses):
        raise EmptyError("no molecule can be learned from", hint="look at the reasons: molgraph data audit FILE")
    language = Language(clusters, AttachmentGraphs(clusters))
    train, texts = _packed(smiles, parses, language)
    held, known, validation = None, clusters.trees(judged, workers=workers), judged
    if any(parse.tree for parse in known):
        held, judged = _packed(judged, known, language)
    corpus = Corpus(
        _samples(train),
        None if held is None else _samples(held),
        language,
        (texts, [] if held is None else judged),
        (*_passed_over(smiles, parses), *_passed_over(validation, known, " of the validation part")),
    )
    if folder is not None:
        _keep(folder, key, corpus)
    return corpus


def smiles_of(table: Table) -> list[str]:
    """The texts of a table's one column of molecules; an unreadable row has an empty one."""
    check_corpus(table)
    return [text.strip() if ok else "" for text, ok in zip(table.smiles.tolist(), table.ok.tolist(), strict=True)]


def _packed(smiles: Sequence[str], found: Sequence[Decomposed], language: Language) -> tuple[GraphStore, list[str]]:
    """The molecules that have a tree, and their texts."""
    texts = [text for text, parse in zip(smiles, found, strict=True) if parse.tree is not None]
    return pack_trees(texts, [parse.tree for parse in found if parse.tree], *language), texts


def _samples(store: GraphStore) -> Samples:
    """The molecules of a store as the engine takes them."""
    return Samples((store,), np.arange(len(store))[:, None], weights=np.ones((len(store), 1), np.float32))


def _passed_over(smiles: Sequence[str], found: Sequence[Decomposed], where: str = "") -> tuple[str, ...]:
    """Notes on the rows that are not learned from."""
    left = [(text, parse.reason) for text, parse in zip(smiles, found, strict=True) if parse.tree is None]
    counts = Counter("unreadable" if why_unreadable(text) else reason.split(":")[0] for text, reason in left)
    return tuple(f"rows{where} that are not learned from: {n:,} ({cause})" for cause, n in counts.most_common())


def _keep(folder: Path, key: Mapping[str, str], corpus: Corpus) -> None:
    """Write three stores, and then the list of the rest."""
    (folder / FILE).unlink(missing_ok=True)
    save_store(corpus.train.stores[0], folder / "train")
    if corpus.valid is not None:
        save_store(corpus.valid.stores[0], folder / "valid")
    save_store(corpus.vocabulary.graphs.to_store(), folder / "graphs")
    rest = {"clusters": corpus.vocabulary.clusters.to_json(), "content": corpus.content, "notes": corpus.notes}
    with atomic_write(folder / FILE, "w") as file:
        json.dump({"key": key, "valid": corpus.valid is not None, **rest}, file)


def _kept(folder: Path, key: Mapping[str, str]) -> Corpus | None:
    """The corpus in a folder, where it is whole and has this key."""
    try:
        meta = json.loads((folder / FILE).read_text("utf-8"))
        if meta["key"] != key:
            return None
        clusters = Vocabulary.from_json(meta["clusters"])
        graphs = AttachmentGraphs.from_store(clusters, load_store(folder / "graphs"))
        train, valid = load_store(folder / "train"), load_store(folder / "valid") if meta["valid"] else None
        texts, judged = meta["content"]
    except (OSError, StorageError, ValueError, KeyError, TypeError):  # not there, or damaged: it is read anew
        return None
    held = None if valid is None else _samples(valid)
    return Corpus(_samples(train), held, Language(clusters, graphs), (texts, judged), tuple(meta["notes"]))

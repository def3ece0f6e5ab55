"""Compute pretraining labels from the molecules' SMILES, such as descriptors, and keep them in memory-mapped files."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from molgraph.base.cores import cores
from molgraph.base.paths import atomic_write, storage_error
from molgraph.base.progress import bar
from molgraph.base.seeds import generator
from molgraph.train.checkpoint import digest

PIECE = 16_384  # rows of a file
FITTED_ON = 10_000  # rows, from which scales and vocabularies are taken


class RowLabels(ABC):
    """What an objective learns of each molecule in place of a table's targets: ``width`` numbers made of its SMILES.

    Attributes:
        name: of its files.
        width: numbers of a row.
    """

    name: str
    width: int

    @abstractmethod
    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Take scales and vocabularies from molecules of the training part."""

    def state(self) -> Sequence[np.ndarray]:
        """The arrays that ``fit`` set, which decide with the molecules what the labels are."""
        return ()

    @abstractmethod
    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """The labels of n molecules.

        Returns:
            float16 [n, width]; NaN where a molecule has no value.
        """


class LabelPieces:
    """Rows of labels in files of ``PIECE`` rows each, indexed as an array by int64 rows; more than memory holds.

    Args:
        pieces: float16 [PIECE, width] each, the last one of fewer rows.
        folder: a temporary folder that is to be deleted with it, or None.
    """

    def __init__(
        self, pieces: Sequence[np.ndarray], width: int, folder: tempfile.TemporaryDirectory[str] | None = None
    ) -> None:
        self.pieces, self.folder = pieces, folder
        self.shape = (sum(map(len, pieces)), width)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """float32 [n, width]."""
        out = np.empty((len(rows), self.shape[1]), np.float32)
        number, place = np.divmod(rows, PIECE)
        for piece in np.unique(number):
            at = number == piece
            out[at] = self.pieces[piece][place[at]]
        return out


def fit_labels(labels: RowLabels, texts: Sequence[str], workers: int | None) -> None:
    """Take scales from up to ``FITTED_ON`` molecules of the training part, drawn evenly; the same for any run."""
    n = len(texts)
    rows = np.arange(n) if n <= FITTED_ON else np.sort(generator(0, "row labels").choice(n, FITTED_ON, replace=False))
    labels.fit([texts[i] for i in rows], cores(workers))


def label_rows(labels: RowLabels, texts: Sequence[str], folder: Path | None, workers: int | None) -> LabelPieces:
    """Make the labels of n molecules, or find those that an earlier run has made.

    Args:
        labels: fitted.
        texts: SMILES.
        folder: where pieces are kept between runs, each written under a temporary name and renamed, under the hash of
            its molecules and of what was fitted; None for a temporary one.

    Raises:
        StorageError: the folder cannot be written.
    """
    temp_dir = tempfile.TemporaryDirectory(prefix="molgraph-labels-") if folder is None else None
    place, pieces = Path(temp_dir.name) if temp_dir is not None else Path(folder or "") / "labels", list[np.ndarray]()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(f"cannot make the folder {place}", error) from error
    with bar(labels.name, total=len(texts)) as line:
        for first in range(0, len(texts), PIECE):
            part = texts[first : first + PIECE]
            path = place / f"{labels.name}-{digest([labels.name, *labels.state(), list(part)])[:32]}.npy"
            if not path.is_file():
                with atomic_write(path) as file:
                    np.save(file, labels.make(part, cores(workers)))
            pieces.append(np.load(path, mmap_mode="r", allow_pickle=False))
            line.advance(len(part))
    return LabelPieces(pieces, labels.width, temp_dir)

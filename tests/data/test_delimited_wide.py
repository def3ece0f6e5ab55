"""Wide tables: a header longer than the sample is read whole, and time grows with the columns, not their square."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from molgraph.base.errors import AmbiguousColumnError, TooLargeError
from molgraph.data.read import read_table
from molgraph.data.reading.chunk import check_unique
from molgraph.data.reading.delimited import MOST
from molgraph.data.reading.formats import reader_for
from molgraph.data.reading.source import SAMPLE_BYTES


def wide(path: Path, n_columns: int, name: str = "g", encoding: str = "utf-8") -> Path:
    more = ",".join(f"{name}{i}" for i in range(n_columns))
    rows = [f"{'C' * (i + 1)},{i}" + ",0" * n_columns for i in range(4)]
    path.write_text("\n".join([f"smiles,y,{more}", *rows]) + "\n", encoding=encoding)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_header_longer_than_the_sample_is_read_whole(tmp_path: Path, encoding: str) -> None:
    path = wide(tmp_path / "wide.csv", 60_000, encoding=encoding)
    assert len(path.read_text(encoding).splitlines()[0]) > SAMPLE_BYTES
    table = read_table(path, targets=["y"], features=["g59999"])
    assert table.y[:, 0].tolist() == [0, 1, 2, 3]
    assert table.features is not None and table.features.shape == (4, 1)


def test_standard_input_with_a_long_header(tmp_path: Path) -> None:
    path = wide(tmp_path / "wide.csv", 60_000)
    code = "from molgraph.data.read import read_table; print(read_table('-', targets=['y']).y[:, 0].tolist())"
    with path.open("rb") as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[0.0,", "1.0,", "2.0,", "3.0]"]


def test_a_header_of_many_megabytes_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TooLargeError, match=f"{MOST:,}"):
        reader_for(wide(tmp_path / "wide.csv", 60_000, "a_rather_long_name_" * 5))


def test_time_grows_with_the_columns_and_not_with_their_square(tmp_path: Path) -> None:
    def seconds(n: int) -> float:
        path, found = wide(tmp_path / f"{n}.csv", n), []
        for _ in range(3):  # the fastest: a busy machine slows some
            started = time.process_time()
            reader = reader_for(path)
            for chunk in reader.chunks(reader.names, 2):
                assert chunk.columns.num_columns == n + 2
            found.append(time.process_time() - started)
        return min(found)

    seconds(500)
    assert seconds(20_000) < 25 * seconds(2_000)  # the square would be 100


def test_the_columns_of_one_name_are_named() -> None:
    with pytest.raises(AmbiguousColumnError, match="'a', 'c'"):
        check_unique(["c", "a", "b", "a", "c"], "it")

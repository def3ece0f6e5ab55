"""Downloads from a server on this machine: whole, resumed after a kill, cut short, changed, wrong."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from molgraph.base.errors import CannotWriteError, DownloadError, MismatchError
from molgraph.data.sources import download as module
from molgraph.data.sources.download import download
from tests.data.web import Web, serving

DATA = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(20_000))  # 640 kB that no part repeats
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    with serving(Web(file=DATA)) as one:
        yield one


def beside(path: Path) -> set[str]:
    """What stands in a folder beside a file, its lock left out."""
    return {p.name for p in path.parent.iterdir() if not p.name.endswith(".lock")} - {path.name}


def test_a_file_comes_whole_and_leaves_nothing_beside_it(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.csv"
    done = download(web.url("file"), path, sha256=SHA, md5=hashlib.md5(DATA).hexdigest())
    assert path.read_bytes() == DATA
    assert done == SHA
    assert beside(path) == set()


@pytest.mark.parametrize("cut", [1, 100_000, len(DATA) - 1])
def test_a_broken_connection_is_gone_on_with(web: Web, tmp_path: Path, cut: int) -> None:
    web.cut, web.cuts = cut, 1
    download(web.url("file"), tmp_path / "f", sha256=SHA)
    assert [asked for _, asked in web.asked] == ["", f"bytes={cut}-"]
    until = time.monotonic() + 5
    while web.sent < len(DATA) and time.monotonic() < until:  # it counts after it has sent
        time.sleep(0.01)
    assert web.sent == len(DATA)  # no byte was sent twice


def test_a_killed_download_is_gone_on_with(web: Web, tmp_path: Path) -> None:
    web.pause = 0.02
    code = "import sys; from pathlib import Path; from molgraph.data.sources.download import download\n"
    code += "download(sys.argv[1], Path(sys.argv[2]))"
    child = subprocess.Popen([sys.executable, "-c", code, web.url("file"), str(tmp_path / "f")])
    while web.sent < 300_000:
        time.sleep(0.01)
        assert child.poll() is None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = (tmp_path / "f.part").stat().st_size
    assert kept > 0
    assert not (tmp_path / "f").exists()
    web.pause = 0.0
    assert download(web.url("file"), tmp_path / "f") == SHA
    assert web.asked[-1] == ("file", f"bytes={kept}-")


def test_halves_of_two_versions_are_never_put_together(web: Web, tmp_path: Path) -> None:
    web.cut, web.cuts, web.ranges = 200_000, module.TRIES, False
    with pytest.raises(DownloadError, match="127") as caught:
        download(web.url("file"), tmp_path / "f")
    assert "200,000" in caught.value.hint
    web.ranges, web.files = True, {"file": DATA[::-1]}
    download(web.url("file"), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == DATA[::-1]


@pytest.mark.parametrize(("ranges", "validators"), [(False, True), (True, False)])
def test_a_server_that_cannot_resume_starts_anew(web: Web, tmp_path: Path, ranges: bool, validators: bool) -> None:
    web.ranges, web.validators, web.cut, web.cuts = ranges, validators, 300_000, 1
    assert download(web.url("file"), tmp_path / "f") == SHA


def test_a_part_longer_than_the_file_is_thrown_away(web: Web, tmp_path: Path) -> None:
    web.cut, web.cuts = 400_000, 1
    web.ranges = False
    (tmp_path / "f.part").write_bytes(DATA + b"more")
    assert download(web.url("file"), tmp_path / "f") == SHA


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_wrong_hash_is_refused_with_both_hashes_and_nothing_is_kept(web: Web, tmp_path: Path, kind: str) -> None:
    wrong = hashlib.new(kind, b"other").hexdigest()
    with pytest.raises(MismatchError) as caught:
        download(web.url("file"), tmp_path / "f", **{kind: wrong})
    assert wrong in str(caught.value)
    assert hashlib.new(kind, DATA).hexdigest() in str(caught.value)
    assert beside(tmp_path / "f") == set()


def test_a_server_in_trouble_is_asked_again_and_a_missing_file_is_not(web: Web, tmp_path: Path) -> None:
    web.status, web.errors = 503, 2
    assert download(web.url("file"), tmp_path / "f") == SHA
    assert len(web.asked) == 3
    with pytest.raises(DownloadError, match="404") as caught:
        download(web.url("other"), tmp_path / "g")
    assert len(web.asked) == 4
    assert "MOLGRAPH_DATA" in caught.value.hint


def test_no_server_and_no_http_are_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:9"):
        download("http://127.0.0.1:9/file", tmp_path / "f")
    with pytest.raises(DownloadError, match="file:///etc/hostname"):
        download("file:///etc/hostname", tmp_path / "f")


def test_a_full_disk_is_said_as_such(web: Web, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "f.part").symlink_to("/dev/full")
    with pytest.raises(CannotWriteError, match="no space left"):
        download(web.url("file"), tmp_path / "f")


def test_a_file_too_large_is_refused(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(DownloadError, match="640,000"):
        download(web.url("file"), tmp_path / "f")


def test_two_at_once_get_one_file(web: Web, tmp_path: Path) -> None:
    web.pause = 0.002
    threads = [threading.Thread(target=download, args=(web.url("file"), tmp_path / "f")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() == DATA
    assert beside(tmp_path / "f") == set()


def test_a_range_of_another_version_is_not_put_behind_this_one(web: Web, tmp_path: Path) -> None:
    """A server that ignores If-Range, with no hash to notice it."""
    web.cut, web.cuts = 200_000, module.TRIES
    web.ranges = False
    with pytest.raises(DownloadError, match="127"):
        download(web.url("file"), tmp_path / "f")
    web.ranges, web.trusts, web.files = True, True, {"file": DATA[::-1]}
    download(web.url("file"), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == DATA[::-1]


def test_an_answer_of_no_length_is_taken_where_a_hash_tells_and_refused_elsewhere(web: Web, tmp_path: Path) -> None:
    web.lengths, web.cut, web.cuts = False, 100_000, 1
    with pytest.raises(MismatchError, match="sha256"):
        download(web.url("file"), tmp_path / "f", sha256=SHA)
    assert beside(tmp_path / "f") == set()
    assert download(web.url("file"), tmp_path / "f", sha256=SHA) == SHA
    with pytest.raises(DownloadError, match="no hash"):  # last: its answer is not read to its end
        download(web.url("file"), tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_a_part_that_no_range_fits_is_thrown_away(web: Web, tmp_path: Path) -> None:
    web.cut, web.cuts, web.shifted = 200_000, 1, 7
    assert download(web.url("file"), tmp_path / "f") == SHA
    assert [asked for _, asked in web.asked] == ["", "bytes=200000-", ""]


@pytest.mark.parametrize(
    "answer",
    [
        "302 Found\r\nLocation: http://[::1/x",
        f"302 Found\r\nLocation: http://{'a' * 70}.com/",
        "302 Found\r\nLocation: http://\xe9xample.invalid/\xff",
        "200 OK\r\nContent-Length: \xb2",
        "200 OK\r\nContent-Length: " + "9" * 5000,
        "206 Partial Content\r\nContent-Range: bytes 0-9/\xb2",
        "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_an_answer_that_makes_no_sense_is_a_sentence(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        client.recv(1 << 12)
                        client.sendall(f"HTTP/1.1 {answer}\r\n\r\n".encode("latin-1"))

        threading.Thread(target=serve, daemon=True).start()
        for sha256 in ("", SHA):
            with pytest.raises((DownloadError, MismatchError)) as caught:
                download(f"http://127.0.0.1:{server.getsockname()[1]}/f", tmp_path / "f", sha256=sha256)
            assert caught.value.hint
        server.shutdown(socket.SHUT_RDWR)
    assert not (tmp_path / "f").exists()


def test_a_folder_that_may_not_be_written_is_a_sentence(web: Web, tmp_path: Path) -> None:
    (tmp_path / ".f.part.lock").mkdir()  # the superuser may write wherever permissions say no
    with pytest.raises(CannotWriteError, match=tmp_path.name):
        download(web.url("file"), tmp_path / "f", sha256=SHA)

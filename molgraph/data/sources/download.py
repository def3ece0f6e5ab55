"""Download a file whole, going on where an earlier try broke off, and hash it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock

from molgraph.base.errors import DownloadError, MismatchError
from molgraph.base.paths import storage_error
from molgraph.base.progress import bar
from molgraph.base.version import __version__

PIECE = 1 << 18
TRIES = 4
WAIT_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0
MAX_BYTES = 20 * 10**9
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}


def download(url: str, path: Path, *, sha256: str = "", md5: str = "", label: str = "") -> str:
    """Download a file, with progress, resume and checksum.

    What came is kept beside ``path`` under the name ``.part``: a later try asks for the rest alone (HTTP ``Range``
    with ``If-Range``, so that halves of two versions are never put together). ``path`` exists whole or not at all.
    A file of unknown length without a hash is refused, since nobody could know whether it is whole.

    Args:
        url: http or https.
        path: the file to make; its folder is made too.
        sha256: what the file must have; empty where nobody knows.
        md5: likewise.
        label: what the progress bar says.

    Returns:
        Its sha256.

    Raises:
        MismatchError: the file that came has another hash; both are named, and nothing is kept.
        StorageError: it cannot be had, or not written; the hint says why, and what is kept.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url} is no http address", hint="the card is at fault")
    part = path.with_name(f"{path.name}.part")
    there = path.is_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{part.name}.lock")).acquire()  # so that two processes don't write one file
    except OSError as error:
        raise storage_error(f"cannot write into {path.parent}", error) from error
    with lock:
        if path.is_file() and not there:  # another process fetched it while this one waited
            return sha256_of(path)
        for attempt in range(TRIES):
            try:
                if _receive(url, part, label or path.name, hashed=bool(sha256 or md5)):
                    break
            except (OSError, HTTPException, ValueError) as error:
                _give_up(url, part, error, last=attempt == TRIES - 1)
            time.sleep(WAIT_SECONDS * attempt)
        else:
            raise DownloadError(f"the connection to {urlsplit(url).netloc} keeps breaking", hint=_kept(part))
        came = sha256_of(part)
        for name, stated, digest in (("sha256", sha256, came), ("md5", md5, md5 and _digest(part, "md5"))):
            if stated and stated != digest:
                _forget(part)
                raise MismatchError(
                    f"{url} is not the file of the card: its {name} is {digest}, expected {stated}",
                    hint="nothing was kept; the file changed at its address, or something stands between",
                )
        os.replace(part, path)
        _forget(part)
    return came


def sha256_of(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal digits."""
    try:
        return _digest(path, "sha256")
    except OSError as error:
        raise storage_error(f"cannot read {path}", error) from error


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _receive(url: str, part: Path, label: str, *, hashed: bool) -> bool:
    """Append what is missing of a file; whether it is whole now (as far as can be known, where a hash is to tell)."""
    have, validator = _progress(part, url)
    headers = {"User-Agent": f"molgraph/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    request = urllib.request.Request(url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:
            raise
        _forget(part)  # the server has fewer bytes than came before: begin anew
        return False
    with response:
        start, total = _extent(response, have)
        if start is None or (start and _validator(response) not in ("", validator)):
            _forget(part)  # another range than asked for, or of another version: begin anew
            return False
        have = start
        chunked = response.headers.get("Transfer-Encoding", "").lower() == "chunked"  # then its end is marked
        if total is None and not chunked and not hashed:
            raise DownloadError(
                f"{url} cannot be checked: the server does not say how long it is, and there is no hash",
                hint="download it by another way, look at it, and name it as a file",
            )
        if total is not None and total > MAX_BYTES:
            raise DownloadError(f"{url} has {total:,} bytes", hint=f"molgraph downloads files of up to {MAX_BYTES:,}")
        noted = json.dumps({"url": url, "validator": _validator(response)})
        part.with_suffix(".json").write_text(noted, encoding="utf-8")
        came = have
        with part.open("ab" if have else "wb") as file, bar(f"{label} (bytes)", total or None) as line:
            line.advance(have)
            while piece := response.read(PIECE):
                file.write(piece)
                line.advance(len(piece))
                came += len(piece)
                if came > MAX_BYTES:
                    raise DownloadError(f"{url} has more than {MAX_BYTES:,} bytes", hint="the card is at fault")
    if total is not None and came > total:
        _forget(part)  # what was there before is no part of this file
    return total is None or came == total


def _extent(response: Any, have: int) -> tuple[int | None, int | None]:
    """Where the answer begins (None: elsewhere than asked for), and the size of the whole file where it is said."""
    if response.status == 206:
        span, _, whole = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
        size = _size(whole)
        return (have, size) if span.partition("-")[0] == str(have) and size is not None else (None, None)
    return 0, _size(response.headers.get("Content-Length", ""))


def _size(text: str) -> int | None:
    """A number of bytes as a server says it; None where it is none."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def _validator(response: Any) -> str:
    """What a later ``If-Range`` may ask by: a strong ETag, or the date of the last change."""
    etag = response.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified", "")


def _progress(part: Path, url: str) -> tuple[int, str]:
    """Bytes of an earlier try that can be gone on with, and what to ask by."""
    with suppress(OSError, ValueError, AttributeError):
        noted = json.loads(part.with_suffix(".json").read_text(encoding="utf-8"))
        if noted.get("url") == url and noted.get("validator"):
            return part.stat().st_size, str(noted["validator"])
    return 0, ""


def _forget(part: Path) -> None:
    for path in (part, part.with_suffix(".json")):
        path.unlink(missing_ok=True)


def _give_up(url: str, part: Path, error: Exception, *, last: bool) -> None:
    """Raise for what another try would not mend, or at the last one."""
    changed = "the address may have changed; set MOLGRAPH_DATA to a folder that has the file"
    if isinstance(error, urllib.error.HTTPError):
        if last or (error.code < 500 and error.code not in (408, 429)):
            words = f"{url} cannot be had: the server answers {error.code} {error.reason}"
            raise DownloadError(words, hint=changed) from None
        return
    if isinstance(error, OSError) and error.errno in _DISK:
        raise storage_error(f"cannot write {part}", error) from error
    if isinstance(error, ValueError):  # an address, a header or a length that is none
        raise DownloadError(f"{url} cannot be had: its server's answer makes no sense: {error}", hint=changed) from None
    reason = getattr(error, "reason", None) or error
    unreachable = isinstance(error, urllib.error.URLError) and not isinstance(reason, ConnectionError | TimeoutError)
    if last or unreachable:
        raise DownloadError(f"cannot reach {urlsplit(url).netloc}: {reason}", hint=_kept(part)) from None


def _kept(part: Path) -> str:
    size = part.stat().st_size if part.is_file() else 0
    return f"{size:,} bytes are kept: the same command goes on from there" if size else "is there a network?"

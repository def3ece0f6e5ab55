"""Requests in, milliseconds and requests a second of `molgraph serve` out, for small models on this machine.

    python pipelines/speed/serve_speed.py [--seconds 5] [--clients 32] [--workers 2]

The clients run on the same cores as the server. Each request asks for one molecule that no request before it named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np

import molgraph

LONE = 200  # requests that are sent one after another
MODELS = {
    "linear": {"model": "linear"},
    "dmpnn": {"model": "dmpnn", "epochs": 2, "params": {"descriptors": "none"}},
}


def make_models(folder: Path) -> list[str]:
    """Small models of the series that comes with molgraph."""
    table = molgraph.read_table("builtin:chembl2321810").take(range(300))
    for name, options in MODELS.items():
        molgraph.train(table, baseline=False, split="random", **options).model.save(folder / f"{name}.mgm")
    return [str(folder / f"{name}.mgm") for name in MODELS]


def molecules() -> Iterator[str]:
    """Different molecules of the size of drugs."""
    cores = ("c1ccc(NC(=O)C2CCNC2)cc1", "c1ncc(C(=O)N2CCOCC2)cn1", "c1ccc2[nH]ccc2c1", "C1CCN(S(=O)(=O)c2ccccc2)C1")
    for i in count():
        yield f"{'C' * (i // 64 % 12)}{'ON'[i % 2]}{'C' * (1 + i // 768 % 12)}C{'FC'[i // 2 % 2]}{cores[i // 4 % 4]}"


async def request(line: tuple[asyncio.StreamReader, asyncio.StreamWriter], model: str, smiles: str) -> int:
    """One request on an open connection; its status."""
    reader, writer = line
    body = json.dumps({"smiles": [smiles]})
    head = f"POST /models/{model}/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(answer.partition("content-length: ")[2].split("\r\n")[0]))
    return int(answer.split(" ")[1])


async def measure(port: int, model: str, clients: int, seconds: float) -> tuple[np.ndarray, float, int]:
    """Seconds of requests that are sent one by one; requests a second of many clients at once; refused ones."""
    texts, lone = molecules(), []
    line = await asyncio.open_connection("127.0.0.1", port)
    for i in range(LONE + 10):
        start = time.perf_counter()
        await request(line, model, next(texts))
        if i >= 10:
            lone.append(time.perf_counter() - start)
    statuses: list[int] = []
    start = time.perf_counter()

    async def client() -> None:
        own = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < start + seconds:
            statuses.append(await request(own, model, next(texts)))

    await asyncio.gather(*(client() for _ in range(clients)))
    spent = time.perf_counter() - start
    return np.array(lone), statuses.count(200) / spent, len(statuses) - statuses.count(200)


def main() -> None:
    """Measure, and print a line a model."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "molgraph", "serve", *make_models(Path(folder)), "--port", "0"]
        command += ["--workers", str(given.workers)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split()[0].rpartition(":")[2])
            load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
            print(f"{os.cpu_count()} cores, load before: {load}; {given.clients} clients, {given.workers} workers")
            for name in MODELS:
                lone, rate, refused = asyncio.run(measure(port, name, given.clients, given.seconds))
                middle, most = (1e3 * np.quantile(lone, q) for q in (0.5, 0.95))
                each = f"one molecule {middle:.1f} ms (95%: {most:.1f} ms)"
                print(f"{name}: {each}; {rate:.0f} requests/s, {refused} refused")
        finally:
            server.terminate()
            server.wait(timeout=20)


if __name__ == "__main__":
    main()

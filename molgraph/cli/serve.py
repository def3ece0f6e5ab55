"""``molgraph serve``: a page and a JSON API for model files, over HTTP."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from molgraph.cli import options as opt


def serve(
    models: Annotated[list[str], opt.argument("Model files (.mgm), or NAME=FILE.")],
    host: Annotated[str, opt.option("HOST", "0.0.0.0 for all that reach this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0 for any that is free.")] = 8000,
    token: Annotated[str | None, opt.option("TOKEN", "Requests must bear it; or set MOLGRAPH_TOKEN.")] = None,
    limit: Annotated[list[str] | None, opt.option("NAME=N", "A limit, as listed below; again for several.")] = None,
    measured: Annotated[
        str | None, opt.option("TABLE", "Measured molecules, whose nearest are shown beside a prediction.")
    ] = None,
    explain: Annotated[str, opt.option("NAME", "An explainer with its settings, auto or none.")] = "auto",
    folder: Annotated[str | None, opt.option("DIR", "Keeps uploaded files; temporary if not given.")] = None,
    workers: Annotated[int, opt.option("N", "Processes that hold the models.")] = 2,
    device: opt.Device = None,
    threads: Annotated[int | None, opt.option("N", "CPU threads of each process; 1 if not given.")] = None,
) -> None:
    """Serve models over HTTP until Ctrl-C: a page, and a JSON API.

    The page takes molecules that are pasted, or a file (csv, tsv, smi, sdf), and
    shows predictions, intervals, the grade of the domain, coloured atoms and the
    nearest measured molecules; /openapi.json describes the API, /health says how
    the server is. Columns and status words are those of molgraph predict.

    Requests that wait at the same time are predicted together. Too many are
    refused (503 or 429, with Retry-After). A process that dies is started again
    and answers its requests all the same; a file goes on where it stopped, with
    --folder also after a restart. Who reaches the port reads what the models
    and the measured molecules say: beyond this machine set a token, and put a
    proxy with TLS before it.

    Examples:
        molgraph serve assay.mgm
        molgraph serve assay.mgm sol=esol.mgm --port 8080 --measured assay.csv
        MOLGRAPH_TOKEN=secret molgraph serve assay.mgm --host 0.0.0.0
        molgraph serve assay.mgm --limit rows=500 --limit seconds=10 --folder files
        curl localhost:8000/models/assay/predict -H "Content-Type: application/json" -d '{"smiles": ["CCO"]}'

    In Python: molgraph.serve("assay.mgm", port=8000, limits={"rows": 500})
    """
    from molgraph import api
    from molgraph.cli.show import say

    opt.check_whole("--workers", workers)
    opt.check_whole("--threads", threads)

    def ready(address: str) -> None:
        say(f"{address}  (Ctrl-C stops it)")
        sys.stdout.flush()  # who waits for the line may read a pipe

    if not token and host not in ("127.0.0.1", "localhost", "::1"):
        _warn(host)
    api.serve(
        models,
        host=host,
        port=port,
        token=token,
        limits=limit or (),
        measured=measured,
        explain=explain,
        folder=folder,
        workers=workers,
        running={"device": device, "threads": threads},
        say=ready,
    )


def listing() -> str:
    """The limits, a line each."""
    from molgraph.serve.limits import Limits

    rows = [f"  {name:<16}{value:,.10g}" for name, value in vars(Limits()).items()]
    return "\n".join(["Limits, and their defaults (docs/serve.md says what each bounds)", *rows])


def _warn(host: str) -> None:
    from molgraph.cli.show import say

    if not os.environ.get("MOLGRAPH_TOKEN"):
        words = f"warning: everybody who reaches {host} can use these models: set MOLGRAPH_TOKEN"
        say(words, "yellow", err=True)

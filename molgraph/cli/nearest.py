"""``molgraph nearest``: the most similar molecules of a library, by an encoder's vectors or by fingerprints."""

from __future__ import annotations

from typing import Annotated

import typer

from molgraph.cli import options as opt


def nearest(
    query: Annotated[str, opt.argument("Molecules or vectors to look around: a file, or one SMILES.")],
    library: Annotated[str, opt.argument("Molecules or vectors to search in: a file, or dataset:NAME.")],
    by: Annotated[str | None, opt.option("MODEL", "An encoder's file (.mgm), or fingerprint (the default).")] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="Rows for each query.")] = 10,
    csls: Annotated[
        bool, typer.Option("--csls/--cosine", help="Lower rows that are near to many queries (hubs).")
    ] = False,
    out: Annotated[str, opt.out_option("csv or parquet; - for the screen.")] = "-",
    smiles: Annotated[str | None, opt.option("COLUMN", "SMILES of both tables; found if not given.")] = None,
    id: opt.Ids = None,
    threads: opt.Threads = None,
) -> None:
    """Find the molecules of a library that are most similar to each query.

    The search is exact and reads the library in blocks: a million rows need
    no more memory than a thousand. Vectors are compared by their cosine,
    fingerprints (Morgan, radius 2, 2,048 bits) by Tanimoto. Columns: query_id,
    query, rank, id, smiles, similarity, reason; a query that cannot be read
    is one row with its reason. A library that is searched often is best
    written as vectors once (molgraph embed).

    Examples:
        molgraph nearest "CC(=O)Nc1ccc(O)cc1" library.smi -k 20
        molgraph nearest hits.csv library.smi --by encoder.mgm -o near.csv
        molgraph embed encoder.mgm library.smi -o library.parquet
        molgraph nearest hits.csv library.parquet --by encoder.mgm
        molgraph nearest hits.parquet library.parquet --csls -o near.parquet

    In Python: molgraph.nearest("hits.csv", "library.smi", by="encoder.mgm")
    """
    from molgraph import api
    from molgraph.cli.latents import check_out, write_frame
    from molgraph.cli.predict import source_of

    opt.check_whole("-k", k)
    opt.check_whole("--threads", threads)
    check_out(out, query, library, *([by] if by else []))
    columns = {name: value for name, value in (("smiles", smiles), ("id", id)) if value}
    found = api.nearest(source_of([query]), source_of([library]), by=by, k=k, csls=csls, threads=threads, **columns)
    failed = int((found["reason"] != "").sum())
    words = f"{len(found) - failed:,} rows for {found['query_id'].nunique() - failed:,} queries"
    write_frame(found, out, words + (f"; {failed:,} queries without a vector, with the reason" if failed else ""))

"""``molgraph nearest``: the most similar molecules of a library, by an encoder's vectors or by fingerprints."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from molgraph.cli import options as opt


def nearest(
    query: Annotated[str, opt.argument("Molecules or vectors to look around: a file, or one SMILES.")],
    library: Annotated[
        str | None, opt.argument("Molecules or vectors to search in: a file, or dataset:NAME; with --smarts left out.")
    ] = None,
    by: Annotated[str | None, opt.option("MODEL", "An encoder's file (.mgm), or fingerprint (the default).")] = None,
    k: Annotated[
        int | None, typer.Option("-k", metavar="N", help="Rows for each query: 10; of a pattern: all.")
    ] = None,
    csls: Annotated[
        bool, typer.Option("--csls/--cosine", help="Lower rows that are near to many queries (hubs).")
    ] = False,
    smarts: Annotated[
        str | None, opt.option("SMARTS", "A pattern to search for, with places for substituents: c1ccccc1[*:1].")
    ] = None,
    like: Annotated[
        list[str] | None, opt.option("SMILES", "A substituent for a place, [*:1]C(=O)O; again for several.")
    ] = None,
    eps: Annotated[float, opt.option("X", "Largest distance from such a substituent; 0: exactly those.")] = 0.0,
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
    written as vectors once (molgraph embed), or as bits (--code-by binary),
    which are compared by their Hamming distance.

    With --smarts the one file is the library. RDKit matches the pattern; at a
    place such as [*:1] stands a substituent whose vector is within --eps of
    one of those of --like. The distance is 1 minus the cosine, of an encoder's
    vectors with --by, else of fourteen properties (size, lipophilicity,
    polarity, charges). Columns: rank, id, smiles, distance, R1, ..., reason.

    Examples:
        molgraph nearest "CC(=O)Nc1ccc(O)cc1" library.smi -k 20
        molgraph nearest hits.csv library.smi --by encoder.mgm -o near.csv
        molgraph embed encoder.mgm library.smi -o library.parquet
        molgraph nearest hits.csv library.parquet --by encoder.mgm
        molgraph nearest hits.csv library.bits --by encoder.mgm
        molgraph nearest hits.parquet library.parquet --csls -o near.parquet
        molgraph nearest library.smi --smarts "c1ccccc1[*:1]" --like "[*:1]C(=O)O" --eps 0.3

    In Python: molgraph.nearest("hits.csv", "library.smi", by="encoder.mgm")
    """
    from molgraph import api
    from molgraph.base.errors import MissingOptionError
    from molgraph.cli.latents import check_out, write_frame
    from molgraph.cli.predict import source_of

    opt.check_whole("-k", k)
    opt.check_whole("--threads", threads)
    check_out(out, query, *([library] if library else []), *([by] if by else []))
    columns: dict[str, Any] = {name: value for name, value in (("smiles", smiles), ("id", id)) if value}
    if smarts is not None:
        columns |= {"smarts": smarts, "like": like or (), "eps": eps}
    elif like or eps:
        raise MissingOptionError("--like and --eps are of a pattern", hint='add --smarts "c1ccccc1[*:1]"')
    where = None if library is None else source_of([library])
    frame = api.nearest(source_of([query]), where, by=by, k=k, csls=csls, threads=threads, **columns)
    failed = int((frame["reason"] != "").sum())
    if smarts is not None:
        words = f"{len(frame) - failed:,} molecules fit the pattern"
        write_frame(frame, out, words + (f"; {failed:,} cannot be read, with the reason" if failed else ""))
        return
    words = f"{len(frame) - failed:,} rows for {frame['query_id'].nunique() - failed:,} queries"
    write_frame(frame, out, words + (f"; {failed:,} queries without a vector, with the reason" if failed else ""))

"""``molgraph latent encode``, ``decode``, ``interpolate`` and ``neighbours``: work in a generator's latent space."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.printable import count
from molgraph.cli.options import Device, Ids, Threads, argument, check_whole, check_writable, option, out_option
from molgraph.cli.predict import source_of

if TYPE_CHECKING:
    import pandas as pd

ModelFile = Annotated[str, argument("The file of a generator with a latent space (.mgm).")]
Seed = Annotated[int, option("N", "The same seed gives the same molecules.")]
Temperature = Annotated[float | None, option("T", "Below 1: likely choices more often; the model's own if not given.")]
Out = Annotated[str, out_option("csv or parquet; - for the screen.")]
FORMATS = (".csv", ".parquet")
AXES = r"^z\d+$"  # columns of a latent vector
REPEATS = 10  # times that the molecule's own vector is decoded, beside its neighbours


def encode(
    model: ModelFile,
    data: Annotated[list[str], argument("csv, csv.gz, tsv, parquet, sdf, smi; or SMILES.")],
    out: Annotated[str, out_option("csv, parquet or npy; - for the screen.")] = "-",
    smiles: Annotated[str | None, option("COLUMN", "SMILES; found if not given.")] = None,
    id: Ids = None,
    refine: Annotated[int, option("N", "Steps towards the vector under which the molecule is most likely.")] = 0,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Write the latent vector of each molecule, row for row and in order.

    Columns: id, smiles, reason, z0, z1, ... A molecule that has no vector
    (it cannot be read, or has a part that the model does not know) stays a
    row, with its reason. A npy file has the vectors alone, NaN where there is
    none. `molgraph latent decode` reads all three. With --refine (of chemvae)
    the vector that the encoder gives is moved to where log p(x, z) is greatest,
    and a column gain says by how many nats it has risen.

    Examples:
        molgraph latent encode gen.mgm library.smi -o latents.csv
        molgraph latent encode gen.mgm CCO c1ccccc1O
        molgraph latent encode gen.mgm library.smi --refine 50 -o latents.csv
        molgraph latent encode gen.mgm library.csv --smiles structure -o latents.npy

    In Python: molgraph.encode("gen.mgm", ["CCO", "c1ccccc1O"])
    """
    check_whole("--threads", threads)
    check_out(out, model, *data, more=(".npy",))
    from molgraph import api

    columns = {name: value for name, value in (("smiles", smiles), ("id", id)) if value}
    frame = api.encode(model, source_of(data), refine=refine, device=device, threads=threads, **columns)
    failed = int((frame["reason"] != "").sum())
    words = f"{count(len(frame), 'row')}, {count(len(frame.filter(regex=AXES).columns), 'latent dimension')}"
    if refine:
        words += f"; log p(x, z) rose by {frame['gain'].mean():.2f} nats a molecule"
    write_frame(frame, out, words + (f"; {failed:,} without a vector, with the reason" if failed else ""))


def decode(
    model: ModelFile,
    latents: Annotated[str, argument("What `molgraph latent encode` wrote: csv, parquet or npy.")],
    out: Out = "-",
    seed: Seed = 0,
    temperature: Temperature = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Write the molecule of each latent vector, row for row and in order.

    Columns: id, smiles, valid, and the reason where a text is no molecule
    or a row has no vector. Vectors of your own making need the columns
    z0, z1, ... alone.

    Examples:
        molgraph latent decode gen.mgm latents.csv -o decoded.csv
        molgraph latent decode gen.mgm latents.npy --seed 1 --temperature 0.5

    In Python: molgraph.decode("gen.mgm", "latents.csv", seed=1)
    """
    check_whole("--threads", threads)
    check_out(out, model, latents)
    from molgraph import api

    frame = api.decode(model, latents, seed=seed, temperature=temperature, device=device, threads=threads)
    write_frame(frame, out, f"{count(len(frame), 'row')}, {int(frame['valid'].sum()):,} valid")


def interpolate(
    model: ModelFile,
    a: Annotated[str, argument("The SMILES to begin with.")],
    b: Annotated[str, argument("The SMILES to end with.")],
    steps: Annotated[int, option("N", "Points, both ends among them.")] = 9,
    path: Annotated[
        str, option("spherical|linear|bridge", "Along the lengths that vectors have, straight, or at random.")
    ] = "spherical",
    paths: Annotated[int, option("N", "Bridges, each with its points.")] = 1,
    spread: Annotated[float, option("S", "Of a bridge: 0 is the straight line, 1 as the prior's vectors.")] = 1.0,
    out: Out = "-",
    seed: Seed = 0,
    temperature: Temperature = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Decode the points on the way from one molecule to another.

    Columns: share (of the way), smiles, valid, reason, like_a and like_b,
    the Tanimoto similarity to each end. The first row and the last are
    decoded too, and need not be A and B themselves. With --path bridge each
    of several random paths (Brownian bridges) has its number in a column path.

    Examples:
        molgraph latent interpolate gen.mgm CCO c1ccccc1O --steps 12
        molgraph latent interpolate gen.mgm CCO CCN --path linear --temperature 0.2 -o way.csv
        molgraph latent interpolate gen.mgm CCO c1ccccc1O --path bridge --paths 20 -o ways.csv

    In Python: molgraph.interpolate("gen.mgm", "CCO", "c1ccccc1O", steps=12)
    """
    check_whole("--threads", threads)
    check_out(out, model)
    from molgraph import api
    from molgraph.api.latent_space import PATHS

    if path not in PATHS:
        raise UnknownNameError(f"--path {path!r} is not known", hint=nearest(path, PATHS))
    how = {"seed": seed, "temperature": temperature, "device": device, "threads": threads}
    way: Any = path
    frame = api.interpolate(model, a, b, steps=steps, path=way, paths=paths, spread=spread, **how)
    words = f"{len(frame):,} points, {int(frame['valid'].sum()):,} valid"
    if path == "bridge":
        words += f" ({frame.loc[frame['valid'], 'smiles'].nunique():,} different)"
    ends = (_likeness(a, frame["like_a"][frame["share"] == 0]), _likeness(b, frame["like_b"][frame["share"] == 1]))
    write_frame(frame, out, "; ".join(filter(None, [words, *ends])))


def neighbours(
    model: ModelFile,
    smiles: Annotated[str, argument("The molecule to look around.")],
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many molecules, at most.")] = 20,
    out: Out = "-",
    seed: Seed = 0,
    temperature: Temperature = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Find valid molecules near one in latent space, the most similar first.

    Points around the molecule's own are decoded, ever farther from it, until
    there are n distinct molecules. Columns: smiles, similarity (Tanimoto),
    and spread, how far the point lay.

    Examples:
        molgraph latent neighbours gen.mgm "CC(=O)Nc1ccc(O)cc1" -n 20
        molgraph latent neighbours gen.mgm CCO -n 100 --temperature 0.5 -o near.csv

    In Python: molgraph.neighbours("gen.mgm", "CC(=O)Nc1ccc(O)cc1", 20)
    """
    check_whole("-n", n)
    check_whole("--threads", threads)
    check_out(out, model)
    from molgraph import api

    loaded, how = api.load(model), {"seed": seed, "temperature": temperature, "device": device, "threads": threads}
    frame = api.neighbours(loaded, smiles, n, **how)
    fewer = "" if len(frame) == n else f", fewer than {n:,}: a higher --temperature finds more"
    repeats = api.interpolate(loaded, smiles, smiles, steps=REPEATS, path="linear", **how)["like_a"]  # one point, again
    write_frame(
        frame, out, "; ".join(filter(None, [f"{count(len(frame), 'molecule')}{fewer}", _likeness(smiles, repeats)]))
    )


def _likeness(smiles: str, like: pd.Series) -> str:
    """How similar to a molecule its own vector decodes, in words; empty where it decodes to itself."""
    share = f" (mean of {len(like)})" if len(like) > 1 else ""
    if like.isna().all():
        return f"{smiles} decodes to no molecule"
    return "" if (like == 1).all() else f"{smiles} decodes to a molecule with similarity {like.mean():.2f} to it{share}"


def check_out(out: str, *inputs: str, more: tuple[str, ...] = ()) -> None:
    """Refuse an output that cannot be written before anything is computed."""
    known = (*FORMATS, *more)
    if out != "-" and Path(out).suffix.lower() not in known:
        hint = f"name a file that ends in {', '.join(known)}"
        raise UnknownNameError(f"this cannot be written to {out!r}", hint=hint)
    check_writable(out, inputs=inputs)


def write_frame(found: pd.DataFrame, out: str, words: str) -> None:
    """Write a table by the ending of its file, or on the screen, and say what came."""
    from molgraph.base.csv_text import csv_text
    from molgraph.base.paths import atomic_write, write_whole
    from molgraph.cli.show import say

    ending = Path(out).suffix.lower()
    if out == "-":
        sys.stdout.write(csv_text(found))
    elif ending == ".csv":
        write_whole(out, csv_text(found))
    elif ending == ".xlsx":
        from molgraph.base.workbook import frame_bytes

        write_whole(out, frame_bytes(found))
    else:
        import numpy as np

        with atomic_write(Path(out)) as file:
            if ending == ".npy":
                np.save(file, found.filter(regex=AXES).to_numpy(np.float32))
            else:
                found.to_parquet(file, index=False)
    say(words + ("" if out == "-" else f"; written to {out}"), err=True)

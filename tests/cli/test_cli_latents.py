"""Encoding, decoding, interpolating and looking around in a generator's latent space, at the shell and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.cli.main import app
from molgraph.data.table import make_table
from molgraph.generate.chemvae import ChemVAE
from molgraph.train.model import Model
from tests.tiny import series

SMALL: dict[str, Any] = {
    "d_hidden": 48,
    "d_latent": 6,
    "d_embedding": 16,
    "n_layers": 1,
    "feedback": "all",
    "beta": 0.01,
}
SMALL |= {"encoder": "gru", "max_length": 24, "epochs": 40, "learning_rate": 0.01, "batch_size": 16, "threads": 1}
A, B = "CCO", "c1ccccc1"


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a VAE that has learned a few molecules nearly by heart, and a table with bad rows."""
    folder = tmp_path_factory.mktemp("latents")
    corpus = [A, B, "CCN", "CCC", "CC(=O)O", "Cc1ccccc1", "CCCl", "CCCO"] * 20
    Model(ChemVAE(**SMALL).fit(make_table(corpus)), targets=()).save(folder / "vae.mgm")
    molgraph.train_generator(list(series(30).smiles), params={"d_hidden": 8}, epochs=1).save(folder / "gru.mgm")
    table = pd.DataFrame({"name": ["a", "b", "c", "d"], "smiles": [A, "C1C", B, "CC[Si]"]})
    table.to_csv(folder / "in.csv", index=False)
    return folder


def test_encoded_rows_keep_their_places_and_decode_reads_them(folder: Path) -> None:
    model = folder / "vae.mgm"
    code, said = run("latent", "encode", model, folder / "in.csv", "--id", "name", "-o", folder / "z.csv")
    assert code == 0 and "4 rows, 6 latent dimensions; 2 without a vector" in said, said
    frame = pd.read_csv(folder / "z.csv", keep_default_na=False)
    assert list(frame) == ["id", "smiles", "reason", *(f"z{i}" for i in range(6))] and list(frame["id"]) == list("abcd")
    assert [bool(why) for why in frame["reason"]] == [False, True, False, True] and "[Si]" in frame["reason"][3]
    for ending in ("parquet", "npy"):
        assert run("latent", "encode", model, folder / "in.csv", "--id", "name", "-o", folder / f"z.{ending}")[0] == 0
    decoded = []
    for ending in ("csv", "parquet", "npy"):
        code, said = run(
            "latent", "decode", model, folder / f"z.{ending}", "--temperature", 0.1, "-o", folder / f"{ending}.csv"
        )
        assert code == 0 and "4 rows, 2 valid" in said, said
        decoded.append(pd.read_csv(folder / f"{ending}.csv", keep_default_na=False))
    assert list(decoded[0]["smiles"]) == [A, "", B, ""], "by heart"
    assert list(decoded[0]["id"]) == list("abcd") and list(decoded[0]["reason"]) == list(frame["reason"])
    assert decoded[1].equals(decoded[0]) and list(decoded[2]["smiles"]) == list(decoded[0]["smiles"])
    assert decoded[2]["reason"][1] == "no latent vector in this row"
    python = molgraph.decode(model, molgraph.encode(model, [A, B]), temperature=0.1)
    assert python["smiles"].tolist() == [A, B] and python["valid"].all()
    code, said = run("latent", "encode", model, A, B, "--threads", 1)
    assert code == 0 and "id,smiles,reason,z0,z1" in said


def test_the_spelling_of_older_versions_works(folder: Path) -> None:
    assert run("latent", "encode", folder / "vae.mgm", A, "-o", folder / "z.csv")[0] == 0
    for verb in (("encode", A), ("decode", folder / "z.csv"), ("neighbours", A, "-n", 1), ("interpolate", A, B)):
        word, *rest = verb
        old, new = run(word, folder / "vae.mgm", *rest), run("latent", word, folder / "vae.mgm", *rest)
        assert old == new and old[0] == 0, old
    assert "neighbours" not in run("--help")[1], "they are hidden"


def test_a_cell_that_is_no_number_is_named(folder: Path) -> None:
    frame = pd.DataFrame(np.zeros((4, 6)), columns=[f"z{i}" for i in range(6)]).astype(object)
    frame.loc[1, "z2"], frame.loc[2, "z4"], frame.loc[3, "z0"] = "abc", "inf", None
    reasons = molgraph.decode(folder / "vae.mgm", frame)["reason"].tolist()
    assert reasons[1:] == [
        "z2 is 'abc', which is no finite number",
        "z4 is 'inf', which is no finite number",
        "no latent vector in this row",
    ]


def test_the_way_from_one_molecule_to_another(folder: Path) -> None:
    way = ["latent", "interpolate", folder / "vae.mgm", A, B, "--steps", 5, "--temperature", 0.1]
    for path in ("spherical", "linear"):
        code, said = run(*way, "--path", path, "-o", folder / "way.csv")
        frame = pd.read_csv(folder / "way.csv", keep_default_na=False)
        assert code == 0 and "5 points" in said and list(frame["share"]) == [0, 0.25, 0.5, 0.75, 1]
        assert "decodes to" not in said
        assert frame["smiles"].iloc[0] == A and frame["smiles"].iloc[-1] == B
        assert float(frame["like_a"].iloc[0]) == 1.0 and float(frame["like_b"].iloc[-1]) == 1.0
    code, said = run("latent", "interpolate", folder / "vae.mgm", "CCCCl", B, "--steps", 2, "--temperature", 0.1)
    assert code == 0 and "CCCCl decodes to a molecule with similarity 0." in said, said
    frame = molgraph.interpolate(folder / "vae.mgm", A, B, steps=2, temperature=0.1)
    assert list(frame) == ["share", "smiles", "valid", "reason", "like_a", "like_b"]


def test_neighbours_are_distinct_valid_others(folder: Path) -> None:
    model, temperature = folder / "vae.mgm", ("--temperature", 1)
    code, said = run("latent", "neighbours", model, A, "-n", 4, *temperature, "-o", folder / "near.csv")
    frame = pd.read_csv(folder / "near.csv")
    assert code == 0 and "4 molecules" in said and len(frame) == 4, said
    assert frame["smiles"].is_unique and A not in set(frame["smiles"])
    assert frame["similarity"].is_monotonic_decreasing and frame["spread"].between(0.25, 2).all()
    code, said = run("latent", "neighbours", model, "CCCCl", "-n", 2, "--temperature", 0.1)
    assert code == 0 and "CCCCl decodes to a molecule with similarity 0." in said and "(mean of 10)" in said, said
    code, said = run("latent", "neighbours", model, A, "-n", 2, "--temperature", 0.1)
    assert code == 0 and "decodes to" not in said, "known by heart"
    again = molgraph.neighbours(model, "OCC", 4, temperature=1.0)
    assert again["smiles"].tolist() == frame["smiles"].tolist(), "however it is written"
    few = molgraph.neighbours(model, A, 60, temperature=0.01)
    assert 0 < len(few) < 60, "it ends"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("latent", "encode", "gru.mgm", "in.csv"), 2, "proposes molecules without a latent space"),
        (("latent", "decode", "gru.mgm", "in.csv"), 2, "-m chemvae"),
        (("latent", "decode", "vae.mgm", "in.csv"), 3, "0 columns of latent vectors, the model 6: z0 to z5"),
        (("latent", "decode", "vae.mgm", "wide.csv"), 3, "7 columns of latent vectors, the model 6"),
        (("latent", "decode", "vae.mgm", "wide.npy"), 3, "shape [2, 7], the model's [n, 6]"),
        (("latent", "decode", "vae.mgm", "texts.npy"), 3, "values of type <U1"),
        (("latent", "decode", "vae.mgm", "complex.npy"), 3, "values of type complex128"),
        (("latent", "decode", "vae.mgm", "npz.npy"), 3, "latent vectors are real numbers"),
        (("latent", "decode", "vae.mgm", "dates.parquet"), 3, "values of type datetime64"),
        (("latent", "decode", "vae.mgm", "none.csv"), 5, "none.csv"),
        (("latent", "decode", "vae.mgm", "vae.mgm"), 3, "holds no latent vectors"),
        (("latent", "interpolate", "vae.mgm", "CCO", "C1C"), 3, "'C1C' has no latent vector: SMILES Parse Error"),
        (("latent", "interpolate", "vae.mgm", "CCO", "C", "--steps", "1"), 2, "2 steps or more"),
        (("latent", "interpolate", "vae.mgm", "CCO", "C", "--path", "round"), 2, "--path 'round'"),
        (("latent", "neighbours", "vae.mgm", "CC[Si]"), 3, "outside the model's vocabulary"),
        (("latent", "neighbours", "vae.mgm", "CC", "-n", "0"), 2, "-n is 0"),
        (("latent", "encode", "vae.mgm", "in.csv", "-o", "a.txt"), 2, "ends in .csv, .parquet, .npy"),
        (("latent", "decode", "vae.mgm", "in.csv", "-o", "in.csv"), 2, "would be written over"),
    ],
)
def test_words_and_exit_codes(
    folder: Path, words: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    pd.DataFrame(np.zeros((2, 7)), columns=[f"z{i}" for i in range(7)]).to_csv("wide.csv", index=False)
    np.save("wide.npy", np.zeros((2, 7)))
    np.save("texts.npy", np.full((2, 6), "a"))
    np.save("complex.npy", np.zeros((2, 6), complex))
    with open("npz.npy", "wb") as file:
        np.savez(file, z=np.zeros((2, 6)))
    pd.DataFrame({f"z{i}": pd.to_datetime(["2020"]) for i in range(6)}).to_parquet("dates.parquet")
    found, out = run(*words)
    assert found == code and said in out, out

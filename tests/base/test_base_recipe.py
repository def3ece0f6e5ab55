"""The recipe: what it accepts, what it says when it doesn't, and that it survives being written down."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from molgraph.base.errors import BadValueError, MissingFileError, MissingOptionError, UnknownNameError, UsageError
from molgraph.base.run_config import RunConfig

text = st.text(max_size=30).filter(lambda s: not any(0xD800 <= ord(c) <= 0xDFFF for c in s))
plain = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), text)
recipes = st.builds(
    lambda path, targets, params, epochs, patience: RunConfig.from_dict(
        {
            "data": {"path": path, "targets": targets},
            "model": {"params": params},
            "training": {"epochs": epochs, "patience": patience},
        }
    ),
    path=st.none() | text,
    targets=st.lists(text, max_size=3),
    params=st.dictionaries(text, plain | st.lists(plain, max_size=3), max_size=4),
    epochs=st.integers(1, 10_000),
    patience=st.integers(1, 100),
)


@given(recipes)
def test_toml_keeps_everything(recipe: RunConfig) -> None:
    assert RunConfig.from_dict(tomllib.loads(recipe.to_toml())) == recipe


@given(recipes)
def test_json_keeps_everything(recipe: RunConfig) -> None:
    assert RunConfig.model_validate_json(recipe.to_json()) == recipe


def test_nested_parameters_survive() -> None:
    recipe = RunConfig.from_dict({"model": {"params": {"head": {"width": 3, "odd key": [1, 2]}}}})
    assert RunConfig.from_dict(tomllib.loads(recipe.to_toml())) == recipe


def test_a_file_says_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('\ufeff[training]\nepochs = 3\n\n[model]\nname = "mpnn"\nparams = { depth = 2 }\n', "utf-8")
    recipe = RunConfig.from_toml(path)
    assert (recipe.training.epochs, recipe.model.name, recipe.model.params) == (3, "mpnn", {"depth": 2})
    assert recipe.split == RunConfig().split


def test_to_toml_writes_a_file_that_reads_back(tmp_path: Path) -> None:
    RunConfig().override("epochs=3").to_toml(tmp_path / "r.toml")
    assert RunConfig.from_toml(tmp_path / "r.toml").training.epochs == 3


@pytest.mark.parametrize(
    ("content", "error", "noun"),
    [
        ("[training]\nepoch = 3", UnknownNameError, "'epochs'"),
        ("[trainign]\nepochs = 3", UnknownNameError, "'training'"),
        ("[training]\nepochs = 0", BadValueError, "training.epochs"),
        ("[training]\nlearning_rate = nan", BadValueError, "learning_rate"),
        ('[training]\nprecision = "float16"', BadValueError, "float32"),
        ("[split]\nfractions = [0.5, 0.2, 0.2]", BadValueError, "sum to 1"),
        ("[split]\nfractions = [0.0, 0.5, 0.5]", BadValueError, "first above 0"),
        ("epochs: 3", UsageError, "not TOML"),
        ("model = 3", BadValueError, "model"),
    ],
)
def test_a_wrong_file_is_one_clear_sentence(tmp_path: Path, content: str, error: type[Exception], noun: str) -> None:
    (tmp_path / "r.toml").write_text(content)
    with pytest.raises(error, match=noun):
        RunConfig.from_toml(tmp_path / "r.toml")


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.toml"):
        RunConfig.from_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("assignment", "section", "name", "value"),
    [
        ("training.epochs=30", "training", "epochs", 30),
        ("epochs=30", "training", "epochs", 30),
        ("learning_rate=1e-4", "training", "learning_rate", 1e-4),
        ("baseline=false", "training", "baseline", False),
        ("patience=none", "training", "patience", None),
        ("split.seed=7", "split", "seed", 7),
        ("fractions=0.7,0.2,0.1", "split", "fractions", (0.7, 0.2, 0.1)),
        ("fractions=[0.7, 0.2, 0.1]", "split", "fractions", (0.7, 0.2, 0.1)),
        ("targets=a, b", "data", "targets", ("a", "b")),
        ("targets=a", "data", "targets", ("a",)),
        ('targets=["a, b"]', "data", "targets", ("a, b",)),
        ("id=007", "data", "id", "007"),
        ("data.path=x=y.csv", "data", "path", "x=y.csv"),
        ("name=mpnn", "model", "name", "mpnn"),
        ("name='mpnn'", "model", "name", "mpnn"),
        ("params.depth=4", "model", "params", {"depth": 4}),
        ("model.params.readout=norm", "model", "params", {"readout": "norm"}),
        ("params.bias=true", "model", "params", {"bias": True}),
    ],
)
def test_override(assignment: str, section: str, name: str, value: object) -> None:
    before = RunConfig()
    after = before.override(assignment)
    assert getattr(getattr(after, section), name) == value
    assert before == RunConfig()


def test_overrides_add_up_and_the_last_wins() -> None:
    recipe = RunConfig().override("params.a=1", "params.b=2", "params.a=3", "epochs=2", "epochs=4")
    assert recipe.model.params == {"a": 3, "b": 2}
    assert recipe.training.epochs == 4


@pytest.mark.parametrize(
    ("assignment", "error", "noun"),
    [
        ("epoch=3", UnknownNameError, "'epochs'"),
        ("training.epoch=3", UnknownNameError, "'training.epochs'"),
        ("seed=3", UnknownNameError, "split.seed or training.seed"),
        ("epochs", BadValueError, "'epochs'"),
        ("=3", BadValueError, "'=3'"),
        ("epochs=many", BadValueError, "training.epochs"),
        ("epochs=0", BadValueError, "training.epochs"),
        ("fractions=1,2", MissingOptionError, "split.fractions"),
        ("depth=4", UnknownNameError, "params.depth="),
        ("dept=4", UnknownNameError, "'params.depth'"),
        ("on_error=hide", BadValueError, "on_error"),
    ],
)
def test_a_wrong_override_is_one_clear_sentence(assignment: str, error: type[Exception], noun: str) -> None:
    with pytest.raises(error, match=noun):
        RunConfig().override(assignment)


@pytest.mark.parametrize("key", ["split.recipe", "recipe", "split.splitter", "splitter"])
def test_the_splitter_is_set_by_its_former_name_too(key: str) -> None:
    assert RunConfig().override(f"{key}=random").split.splitter == "random"


def test_a_stored_recipe_may_have_the_splitters_former_name(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('[split]\nrecipe = "random"\nseed = 3\n')
    old = RunConfig.from_toml(tmp_path / "r.toml")
    assert old == RunConfig.from_dict({"split": {"splitter": "random", "seed": 3}})
    assert "splitter" in old.split.model_fields_set and 'splitter = "random"' in old.to_toml()
    with pytest.raises(UnknownNameError, match=r"split\.recipe"):
        RunConfig.from_dict({"split": {"splitter": "random", "recipe": "time"}})
    with pytest.raises(BadValueError, match=r"split\.recipe"):
        RunConfig.from_dict({"split": {"recipe": 3}})


def test_nothing_edits_a_recipe() -> None:
    with pytest.raises(ValidationError):
        RunConfig().training.epochs = 3  # type: ignore[misc]

"""Define every recipe key once: its type, default and help, for methods, ``train`` and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from molgraph.base.cores import cores
from molgraph.base.options import Keyword, Option, keywords
from molgraph.base.parts import split_model
from molgraph.base.ranges import LARGEST, Count, Range
from molgraph.base.ranges import NotNegative as FromZero
from molgraph.base.ranges import Positive as AboveZero
from molgraph.base.split_keys import Name, SplitSection
from molgraph.base.toml_config import Section

Positive = Annotated[int, Field(ge=1, lt=2**63)]
NotNegative = Annotated[int, Field(ge=0, lt=2**63)]
Threads = Annotated[Count, AfterValidator(cores)]
Names = tuple[str, ...]
PRECISION = "float32 or bfloat16: faster on GPUs and on processors with AMX or AVX512-BF16"
Column = "COLUMN"
USUAL_MODEL = "dmpnn"  # of a recipe that names none
FORMER = {"recipe": "splitter", "split.recipe": "split.splitter"}  # the same in words of ``--set``


class DataSection(Section):
    """The table that is learned from, and the meaning of its columns."""

    path: Name | None = None
    test: Annotated[
        Name | None, Option("A table to test on, with the same columns; all of DATA is then train and valid.", "FILE")
    ] = None
    unlabelled: Annotated[
        Name | None,
        Option(
            "Rows without labels beside DATA, for --objective mean-teacher, self-training or infograph-star.", "FILE"
        ),
    ] = None
    targets: Annotated[
        Names | None,
        Option(
            "To learn; again, or 'SR-*', for several. NAME:multiclass, NAME:binary or NAME:regression says its kind; "
            "NAME:atom or NAME:bond has lists, [0.1, null, -0.2]; NAME:curve are responses, a row a point.",
            Column,
            ("--target", "-t"),
        ),
    ] = None
    helpers: Annotated[
        Names | None,
        Option(
            "A target that helps to learn the main one, for --objective tawt: a column, or FILE:COLUMN of another "
            "table; again for several.",
            Column,
            ("--helper",),
        ),
    ] = None
    smiles: Annotated[str | Names | None, Option("SMILES; found if not given; again for several a row.", Column)] = None
    sequence: Annotated[str | Names | None, Option("A protein sequence; again for several.", Column)] = None
    geometry: Annotated[
        str | Names | None, Option("Atoms in space (mol, XYZ, PDB texts); geometry: of an sdf, xyz or npz.", Column)
    ] = None
    conformers: Annotated[
        Count | None, Option("Make so many a molecule (ETKDG) for a model of atoms in space, such as schnet.", "N")
    ] = None
    relax: Annotated[
        Literal["mmff", "uff", "none"], Option("The force field that relaxes conformers.", "mmff|uff|none")
    ] = "mmff"
    reaction: Annotated[
        str | Names | None,
        Option("Mapped reaction SMILES, found if not given; REACTANTS>>PRODUCT names two columns.", Column),
    ] = None
    inputs: Annotated[
        Names | None,
        Option("A molecule, sequence, reaction or geometry column to read; all if not given.", Column, ("--input",)),
    ] = None
    id: Annotated[str | None, Option("Ids, kept as text.", Column)] = None
    concentration: Annotated[
        str | None, Option("Of each row's response, for --target NAME:curve; found by its name if not given.", Column)
    ] = None
    weight: Annotated[str | None, Option("Row weights.", Column)] = None
    features: Annotated[Names, Option("A descriptor; again for several.", Column, ("--feature",))] = ()
    gaps: Annotated[
        Literal["mark", "mean", "scale"],
        Option(
            "Rows that lack a --feature: none is learnt or predicted; its mean; or the row's others count more.",
            "mark|mean|scale",
        ),
    ] = "mark"
    split_column: Annotated[
        str | None,
        Option(
            "The split: train, valid, test, or fold numbers; with --split time or group, the date or group.", Column
        ),
    ] = None
    on_error: Annotated[Literal["keep", "drop", "stop"], Option("Rows that cannot be read.", "keep|drop|stop")] = "keep"
    duplicates: Annotated[
        Literal["keep", "mean", "median", "drop"],
        Option("Rows of one molecule: learned as they are, or merged.", "keep|mean|median|drop"),
    ] = "keep"
    tolerance: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Option("How far labels of one molecule may lie apart to be merged; any distance if not given.", "X"),
    ] = None
    qualifiers: Annotated[
        Literal["refuse", "drop", "strip", "learn"],
        Option("Labels such as >8.0: left out, 8.0, or learnt as limits.", "refuse|drop|strip|learn"),
    ] = "refuse"
    decimal: Annotated[Literal[".", ","] | None, Option("A comma where values have decimal commas.", "SIGN")] = None
    unit: Annotated[str | None, Option("Bring values with units (251 nM, or a column units) to this one.", "UNIT")] = (
        None
    )
    log: Annotated[bool, Option("Learn log10 of the target.", "", ("--log",))] = False
    standardise: Annotated[str, Option("none, desalt, standard or canonical; kept with the model.", "PRESET")] = (
        "standard"
    )
    private: Annotated[
        bool,
        Option(
            "Keep no training molecules in the model file: predictions then name no nearest one and have no domain.",
            "",
            ("--private",),
        ),
    ] = False


class ModelSection(Section):
    """What learns: a registered name, and that model's own parameters."""

    name: Annotated[str, Option("See `molgraph models`; with settings: gin(depth=3).", "NAME", ("--model", "-m"))] = (
        USUAL_MODEL
    )
    params: dict[str, Any] = Field(default_factory=dict)
    init: Annotated[
        Name | None, Option("A pretrained encoder, or a graph model, whose weights the encoder starts from.", "FILE")
    ] = None
    descriptors: Annotated[
        Name | None,
        Option(
            "An encoder's file (.mgm) or landmarks(FILE, N), whose vectors a forest, linear, xgboost or maplight "
            "reads beside its own features; for a graph model rdkit or none.",
            "FILE",
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, values: Any) -> Any:
        """Parameters that stand in the name, as in ``dmpnn(depth=4)``, among the others."""
        if isinstance(values, Mapping) and isinstance(name := values.get("name"), str) and "(" in name:
            plain, params = split_model(name, values.get("params"))
            return {**values, "name": plain, "params": params}
        return values


class GradientDescent(Section):
    """How weights are learned: the keys that gradient descent alone has."""

    epochs: Annotated[
        Count | None, Option("Passes over the data, at most; if not given 50, or as many as 3,000 steps take.", "N")
    ] = None
    min_steps: Annotated[
        Annotated[int, Range(0, LARGEST)],
        Option("Fewest steps, unless stopped early: epochs, patience and warm-up are stretched to reach them.", "N"),
    ] = 0
    batch_size: Annotated[Count, Option("Molecules in a step.", "N")] = 64
    learning_rate: Annotated[AboveZero, Option("Highest step size of gradient descent.", "X")] = 1e-3
    warmup_epochs: Annotated[FromZero, Option("Epochs until the step size is highest.", "X")] = 2.0
    patience: Annotated[
        Count | None, Option("Epochs without gain before it stops, at most; as many as led to the best.", "N")
    ] = 15
    monitor: Annotated[
        Literal["loss", "accuracy"],
        Option("The best epoch has the lowest loss, or the highest accuracy, of the validation part.", "loss|accuracy"),
    ] = "loss"
    optimizer: Annotated[
        str, Option("adam, adamw, radam, sgd(momentum=0.5), sgdw, rmsprop, or a registered one.", "NAME")
    ] = "adam"
    schedule: Annotated[
        str, Option("How the step size falls after the warm-up: exponential, cosine, linear, constant.", "NAME")
    ] = "exponential"
    weight_decay: Annotated[FromZero, Option("Pull of the weights towards zero.", "X")] = 0.0
    gradient_clip: Annotated[
        AboveZero | Literal["auto"] | None,
        Option("Largest norm of a step's gradient; auto: set by those of the first epoch.", "X|auto"),
    ] = 10.0
    objective: Annotated[str, Option("What a step minimises: molgraph models --kind objective.", "NAME")] = "supervised"
    callback: Annotated[
        str | None,
        Option("Changes of training, joined by +: molgraph models --kind callback.", "NAME"),
    ] = None
    views: Annotated[
        str | None,
        Option("How training sees its batches, joined by +: molgraph models --kind view.", "NAME"),
    ] = None


class TrainingSection(GradientDescent):
    """How a model learns; these defaults are the methods' own, whose signatures take them from here."""

    class_weights: Annotated[
        Literal["balanced"] | dict[str, Any] | None,
        Option("balanced: each class counts alike; in a recipe a weight for each label.", "balanced"),
    ] = None
    ensemble: Annotated[Count, Option("Models to average; their spread is kept, not calibrated.", "N")] = 1
    baseline: Annotated[
        bool,
        Option(
            "A forest beside a graph model; beside one of pairs, each side alone.", "", ("--baseline/--no-baseline",)
        ),
    ] = True
    compare: Annotated[
        bool | None,
        Option(
            "Train a model that starts from a file from scratch too, and say whether the start paid; with fewer than "
            "2,000 rows if not given.",
            "",
            ("--compare/--no-compare",),
        ),
    ] = None
    budget: Annotated[
        str | None, Option("Time for a model that tries several methods, such as --model auto: 30m, 2h. (10m)", "TIME")
    ] = None
    seed: Annotated[NotNegative, Option("Seed of split and training.", "N")] = 0
    device: Annotated[str, Option("cpu, cuda or auto.", "NAME")] = "cpu"
    threads: Annotated[Threads | None, Option("CPU threads; all if not given.", "N")] = None
    precision: Annotated[Literal["float32", "bfloat16"], Option(f"{PRECISION}.", "TYPE")] = "float32"
    store: Annotated[
        Name | None, Option("A folder that keeps graphs for later runs; auto: in the cache.", "FOLDER")
    ] = None


DEFAULTS = TrainingSection()
SECTIONS: dict[str, type[Section]] = {
    "data": DataSection,
    "split": SplitSection,
    "model": ModelSection,
    "training": TrainingSection,
}

#: options of gradient descent; a method gets them only where it declares ``gradient_descent``, for another method may
#: have a parameter of the same name and another meaning: a booster's ``learning_rate`` is how much of each tree counts
GRADIENT_DESCENT = tuple(GradientDescent.model_fields)

#: keyword of ``train`` -> the recipe's keys that it sets
KEYS: dict[str, tuple[tuple[str, str], ...]] = {
    "path": (("data", "path"),),
    **{name: (("data", name),) for name in keywords(DataSection)},
    "model": (("model", "name"),),
    "params": (("model", "params"),),
    "init": (("model", "init"),),
    "descriptors": (("model", "descriptors"),),
    "split": (("split", "splitter"),),
    "fractions": (("split", "fractions"),),
    "cv": (("split", "cv"),),
    "final": (("split", "final"),),
    **{name: (("training", name),) for name in keywords(TrainingSection)},
    "seed": (("training", "seed"), ("split", "seed")),
}

#: what each keyword of ``train`` means, but those of the table itself and of ``params``
KEYWORDS: dict[str, Keyword] = {
    name: keywords(SECTIONS[section])[key]
    for name, ((section, key), *_) in KEYS.items()
    if key in keywords(SECTIONS[section])
}

#: those of fine-tuning, whose encoder's file says the model, and of tuning, whose trials read labelled rows alone
FINETUNE_KEYWORDS: dict[str, Keyword] = {name: each for name, each in KEYWORDS.items() if name not in ("init", "model")}
_UNTUNED = ("budget", "unlabelled", "helpers", "compare")
TUNE_KEYWORDS: dict[str, Keyword] = {name: each for name, each in KEYWORDS.items() if name not in _UNTUNED}

#: those of them that pretraining has; targets are its tasks where it has any
_PRETRAIN = ["targets", "smiles", "sequence", "geometry", "reaction", "inputs", "id", "on_error", "standardise"]
_PRETRAIN += ["model", "init", "split", "fractions"]
_PRETRAIN += keywords(TrainingSection, leave=("class_weights", "ensemble", "baseline", "compare"))
PRETRAIN_KEYWORDS: dict[str, Keyword] = {name: KEYWORDS[name] for name in _PRETRAIN}

PRETRAIN_OBJECTIVE = "masked-atoms"  #: what is learned where no labels are

#: how a corpus without targets is split
CORPUS_SPLIT: dict[str, Any] = {"split": "random", "fractions": (0.95, 0.05, 0.0)}
for _name, _default in CORPUS_SPLIT.items():
    PRETRAIN_KEYWORDS[_name] = replace(KEYWORDS[_name], default=_default)

_objective = KEYWORDS["objective"]
_objective = replace(_objective, option=replace(_objective.option, flags=("--objective", "--method")))
FINETUNE_KEYWORDS["objective"] = _objective
PRETRAIN_KEYWORDS["objective"] = replace(_objective, default=PRETRAIN_OBJECTIVE)

#: those that a generator has, which reads molecules alone
_NOT_GENERATOR = ("targets", "sequence", "geometry", "reaction", "inputs", "store", "objective", "views")
GENERATOR_KEYWORDS = {name: each for name, each in PRETRAIN_KEYWORDS.items() if name not in _NOT_GENERATOR}
GENERATOR_KEYWORDS["model"] = replace(KEYWORDS["model"], default="language")
_START = "A language model (.mgm, or prior) to start from: its settings, its alphabet and its weights."
_init = KEYWORDS["init"]
GENERATOR_KEYWORDS["init"] = replace(_init, option=replace(_init.option, help=_START))

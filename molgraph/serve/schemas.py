"""The JSON that goes in and out, as pydantic models, from which the OpenAPI description is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Cell = str | float | None
Smiles = Annotated[str, Field(max_length=100_000, examples=["CC(=O)Nc1ccc(O)cc1"])]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PredictRequest(_Asked):
    """Molecules: a list of SMILES, or, for models that read more than one, a list for each column."""

    smiles: list[Smiles | None] | None = Field(None, min_length=1, examples=[["CCO", "c1ccccc1O"]])
    ids: list[Annotated[str, Field(max_length=1_000)]] | None = Field(
        None, description="One for each of smiles; their numbers, from 0, if not given."
    )
    columns: dict[str, list[Cell]] | None = Field(
        None, description="All columns that the model reads (see /models), and id if there are ids."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> PredictRequest:
        if (self.smiles is None) == (self.columns is None):
            raise ValueError("give either smiles or columns")
        if self.ids is not None and len(self.ids) != len(self.smiles or ()):
            raise ValueError("ids has another length than smiles")
        if self.columns is not None and len({len(values) for values in self.columns.values()}) != 1:
            raise ValueError("columns need at least one column, all of one length")
        if not self.rows:
            raise ValueError("columns have no row")
        return self

    @property
    def rows(self) -> int:
        """How many molecules."""
        return len(self.smiles) if self.smiles is not None else len(next(iter((self.columns or {"": []}).values())))


class OneMolecule(_Asked):
    """A molecule to explain."""

    smiles: Smiles


class NearestRequest(OneMolecule):
    """A molecule to look around."""

    k: int = Field(5, ge=1, le=50)


class DrawRequest(_Asked):
    """Molecules to draw."""

    smiles: list[Smiles] = Field(min_length=1, max_length=50)


class PredictAnswer(BaseModel):
    """A row for each molecule, in order, with the columns that ``molgraph predict`` writes."""

    model: str
    rows: list[dict[str, Any]] = Field(
        examples=[[{"id": "0", "smiles": "CCO", "pIC50": 5.1, "status": "ok", "reason": ""}]]
    )


class ExplainAnswer(BaseModel):
    """A drawing of the molecule whose atoms or bonds are coloured, and the values behind it."""

    by: str
    smiles: str
    reason: str
    svg: str
    caption: str
    notes: list[str]
    values: list[dict[str, Any]]


class DrawAnswer(BaseModel):
    """An SVG for each molecule."""

    svgs: list[str]


class Neighbour(BaseModel):
    """A measured molecule."""

    rank: int
    id: str
    smiles: str
    similarity: float
    values: dict[str, str]


class NearestAnswer(BaseModel):
    """The most similar measured molecules, the nearest first."""

    columns: list[str]
    rows: list[Neighbour]


class ModelAnswer(BaseModel):
    """A model: what it predicts and reads."""

    name: str
    targets: list[dict[str, Any]]
    reads: list[dict[str, str]]
    coverage: float | None
    explainer: str
    summary: dict[str, str]


class ModelsAnswer(BaseModel):
    """All models, and the server's limits."""

    models: list[ModelAnswer]
    limits: dict[str, float]
    measured: bool


class HealthAnswer(BaseModel):
    """How the server is."""

    status: Literal["ok", "restarting"]
    models: int
    waiting: int
    version: str


class JobAnswer(BaseModel):
    """A file and how far its prediction is."""

    id: str
    model: str
    name: str
    state: Literal["arriving", "waiting", "running", "done", "failed"]
    rows: int = Field(description="Of the file; counted in its lines until it is done.")
    rows_done: int
    failed: int = Field(description="Rows without a value, once it is done; each has its reason in the result.")
    reasons: dict[str, int]
    error: dict[str, str] | None = Field(description="Why all of it failed.")


class Error(BaseModel):
    """What went wrong and what to do next."""

    code: str
    message: str
    hint: str


class ErrorAnswer(BaseModel):
    """The form of every error."""

    error: Error

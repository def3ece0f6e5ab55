"""The network of a graph method: encoders, a joiner where there are several, and a head."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base import registry
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.parameters import check_params
from molgraph.base.parts import read_part, settings_of
from molgraph.base.table import LevelName, Target
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.levels import level_of
from molgraph.nn import relations
from molgraph.nn.block import KEYS, split_options, with_options
from molgraph.nn.contexts import Contexts
from molgraph.nn.encoder import Encoded, Encoder, check_input
from molgraph.nn.joiners import Joiner, JoinPart
from molgraph.nn.penalties import Penalties, add_penalties
from molgraph.train.inputs import Input, encoder_names, own_params
from molgraph.train.packed_weights import Steps
from molgraph.train.samples import Sample


class Network(nn.Module):
    """``head(join(encoder(graph), ...), descriptors)``.

    Args:
        encoders: one for each entity column, or one several times; each gives one state a graph.
        joiner: the states of a row's entities to one state; None for one entity column.
        head: reads that state and the row's descriptors; or the states of atoms (``Head.reads_atoms``).
        level: ``row``; or ``atom`` or ``bond``, whose states the head reads in place of the joined one. A bond's
            state is the sum of its atoms' states, beside the bond's features.
    """

    head: Any  # a ``Head``, or the identity

    def __init__(
        self, encoders: Sequence[Encoder], joiner: Joiner | None, head: nn.Module, level: LevelName = "row"
    ) -> None:
        super().__init__()
        self.level = level
        distinct = [*dict.fromkeys(encoders)]
        self.encoder, self.further_encoders = distinct[0], nn.ModuleList(distinct[1:])
        self.encoder_of = tuple(map(distinct.index, encoders))  # the number of each entity column's encoder
        self.joiner, self.head = joiner, head
        self.parts = nn.ModuleDict()  # what an objective or a callback adds, which the model's file has too
        self.d_state = encoders[0].d_out if joiner is None else joiner.d_out
        self.started: frozenset[str] = frozenset()  # names of the parameters whose weights are those of a file
        self.start_parts: dict[str, nn.Module] = {}  # the parts of the network in that file, which callbacks go on with
        self.quantised: dict[str, Steps] = {}  # weights that its file keeps in few bits, by name
        self.inputs: tuple[Input, ...] = ()  # what each entity column's graphs hold
        self.makers: tuple[Callable[[], Encoder], ...] = ()  # each makes an encoder once more, with fresh weights
        self.make_head: Callable[..., Any]  # of targets: a head like its own for those

    def measure(self, stores: Sequence[GraphStore]) -> None:
        """Take what encoders and parts count, such as degrees and vocabularies, from the graphs of a training part."""
        for encoder, store in zip(self.encoders, stores, strict=True):
            encoder.measure(store)
        for part in self.parts.values():
            if isinstance(part, Contexts):
                part.measure(stores[0])

    @property
    def encoders(self) -> list[Encoder]:
        """One for each entity column; one that several columns share stands there several times."""
        distinct = [self.encoder, *self.further_encoders]
        return [distinct[number] for number in self.encoder_of]

    @property
    def has_head(self) -> bool:
        """Whether it gives more than the states of rows."""
        return not isinstance(self.head, nn.Identity)

    @property
    def reads_atoms(self) -> bool:
        """Whether its head is given the states of atoms in the place of those of rows."""
        return self.has_head and self.head.reads_atoms

    def prepare(self, sample: Sample) -> None:
        """Make the batches' index work ahead."""
        for encoder, part in zip(self.encoders, sample.parts, strict=True):
            encoder.prepare_all(part.batch)
        if self.level == "bond":
            bonds_once(sample.parts[0].batch)
        if sample.plain is not None:
            self.prepare(sample.plain)

    def forward(self, sample: Sample) -> tuple[Tensor, Penalties]:
        """Raw outputs, float [n, d_out], and the encoders' penalties by name, those of one name added up."""
        encoded = self.encode(sample)
        return self.answer(encoded, sample), add_penalties(output.penalties for output in encoded)

    def encode(self, sample: Sample, *, rows: bool = False) -> list[Encoded]:
        """The states of each entity column; with ``rows``, those of rows even where the head reads none."""
        rows = rows or self.level != "row" or self.reads_atoms or (self.joiner is not None and self.joiner.needs_rows)
        return [make(part.batch, rows=rows) for make, part in zip(self.encoders, sample.parts, strict=True)]

    def answer(self, encoded: Sequence[Encoded], sample: Sample, head: nn.Module | None = None) -> Tensor:
        """Raw outputs, float [n, d_out], from the states of each entity column; by another head where one is named."""
        extra, members = sample.extra, {}
        if self.reads_atoms:
            state = _atoms(encoded[0])
            members = {"members": relations.members(sample.parts[0].batch)}
        elif self.level != "row":
            state, row = self._below(encoded[0], sample.parts[0].batch)
            extra = None if extra is None else extra.index_select(0, row)
        elif self.joiner is None:
            state = encoded[0].graphs
        else:
            joined = [JoinPart(e, part.of_row) for e, part in zip(encoded, sample.parts, strict=True)]
            state = self.joiner(joined)
        # a few rows: in single precision the head costs nothing, and bfloat16 would round what it answers
        wide = torch.promote_types(state.dtype, torch.float32)
        if not self.has_head:
            return state.to(wide)
        with torch.autocast(state.device.type, enabled=False):
            head = self.head if head is None else head
            return head(state.to(wide), None if extra is None else extra.to(state.dtype).to(wide), **members)

    def _below(self, encoded: Encoded, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """The states of a batch's atoms or bonds, and the row of each."""
        h = _atoms(encoded)
        if self.level == "atom":
            return h, batch.graph_of("atom")
        once = bonds_once(batch)
        source, target = batch.source.index_select(0, once), batch.target.index_select(0, once)
        ends = h.index_select(0, source) + h.index_select(0, target)
        features = batch.features("bond").index_select(0, once).to(h.dtype)
        return torch.cat([ends, features], dim=1), batch.graph_of("bond").index_select(0, once)


def _atoms(encoded: Encoded) -> Tensor:
    """float [n_atoms, d]: the states of atoms."""
    return next(rows.h for rows in encoded.rows if rows.level == "atom")


def bonds_once(batch: GraphBatch) -> Tensor:
    """int64 [bonds]: of the two directions of each bond the one from its lower atom, in the order of the batch."""
    return batch.once("bonds_once", lambda: torch.nonzero(batch.source < batch.target)[:, 0])


def build_network(
    inputs: Sequence[Input],
    params: Mapping[str, Any],
    *,
    joiner: str,
    d_extra: int,
    targets: Sequence[Target] = (),
    head: str = "perceptron",
    **usual: Any,
) -> Network:
    """The network for some inputs, with fresh weights.

    Args:
        inputs: entity columns and their encoders.
        params: the encoder's hyper-parameters; of several encoders ``{"dmpnn.depth": 4}`` is one's own, and the
            joiner's are ``{"joiner.rank": 64}``.
        joiner: a registered joiner, used where there are several inputs.
        d_extra: width of descriptors.
        targets: what the head predicts, of one level; without any there is no head.
        head: a registered head with its settings.
        usual: settings of the head that ``head`` may have otherwise.
    """
    level = level_of(targets)
    makers, n_kinds = list[Callable[[], Encoder]](), len({e.encoder for e in inputs})
    for input_ in inputs:
        make = registry.get("encoder", input_.encoder)
        check_input(make, input_.spec, input_.encoder)
        makers.append(partial(_encoder, make, own_params(params, input_.encoder, n_kinds), input_.encoder, input_.spec))
    if len(inputs) > 1 and registry.get("joiner", read_part(joiner, "joiner").name).shared:
        _check_shared(joiner, inputs)
        encoders = [makers[0]()] * len(inputs)
    else:
        encoders = [make() for make in makers]
    joined = None if len(encoders) == 1 else _joiner(joiner, encoders, inputs, own_params(params, "joiner", 2))
    network = Network(encoders, joined, nn.Identity(), level)
    network.makers, network.inputs = tuple(makers), tuple(inputs)
    d_state = network.d_state
    if level != "row":
        if joined is not None or not encoders[0].d_rows:
            words = f"{inputs[0].encoder} gives no states of atoms"
            raise UnsupportedError(words, hint="choose another model, such as dmpnn")
        d_state = encoders[0].d_rows + (inputs[0].spec.width("bond") if level == "bond" else 0)
    if targets:
        part = read_part(head, "head")
        make = registry.get("head", part.name)
        how = settings_of(make, part, first=2)
        if make.reads_atoms:
            _check_atoms(part.name, encoders, inputs, d_extra)
            d_state = encoders[0].d_rows
        elif joined is None:
            usual = {**usual, **encoders[0].head_settings}
        network.make_head = partial(_build, make, {**usual, **how}, f"the head {part.name}", d_state + d_extra)
        network.head = network.make_head(targets)
    return network


def _check_shared(joiner: str, inputs: Sequence[Input]) -> None:
    """Refuse columns that one encoder cannot read: those of several encoders, or of several layouts."""
    first = inputs[0]
    for input_ in inputs[1:]:
        if (input_.encoder, input_.spec) != (first.encoder, first.spec):
            columns = " and ".join(f"{one.column} ({one.kind}, {one.encoder})" for one in (first, input_))
            raise UnsupportedError(
                f"{joiner} has one encoder for both columns, which cannot read {columns}",
                hint="name two columns of one kind and one encoder, or choose joiner='bilinear'",
            )


def _check_atoms(head: str, encoders: Sequence[Encoder], inputs: Sequence[Input], d_extra: int) -> None:
    """Refuse what a head that reads the states of atoms does not read, and encoders that give none."""
    if len(encoders) > 1:
        read = " and ".join(f"{input_.column} ({input_.kind})" for input_ in inputs)
        words, hint = f"the atoms of one column, and the model reads {read}", "name one column: --input COLUMN"
    elif not encoders[0].d_rows or "atom" not in inputs[0].spec.widths:
        words = f"the states of atoms, which {inputs[0].encoder} does not give"
        hint = "choose another model, such as schnet for atoms in space or dmpnn for molecules"
    elif any(option.key == "frames" for option in getattr(encoders[0], "block_options", ())):
        words = "the states of atoms, which params.frames makes depend on the whole molecule: no sum is extensive"
        hint = "leave params.frames out, or choose the head perceptron"
    elif d_extra:
        words, hint = "the states of atoms, and no descriptors of a molecule", "leave descriptors and features out"
    else:
        return
    raise UnsupportedError(f"the head {head} reads {words}", hint=hint)


def _joiner(name: str, encoders: Sequence[Encoder], inputs: Sequence[Input], params: Mapping[str, Any]) -> Joiner:
    part = read_part(name, "joiner")
    make, params = registry.get("joiner", part.name), {**params, **part.settings}
    kwargs = {"row_widths": [e.d_rows for e in encoders]} if make.needs_rows else {}
    for input_, encoder in zip(inputs, encoders, strict=True):
        if make.needs_rows and not encoder.d_rows:
            words = f"{name} reads rows, which {input_.encoder} does not give"
            raise UnsupportedError(words, hint="choose joiner='concat'")
    return _build(make, params, part.name, [e.d_out for e in encoders], **kwargs)


def _encoder(make: type[Encoder], params: Mapping[str, Any], owner: str, spec: InputSpec) -> Encoder:
    params, options = split_options(make, params)
    return with_options(partial(_build, make, params, owner), make, owner, spec, options)


def _build(make: Any, params: Mapping[str, Any], owner: str, *args: Any, **given: Any) -> Any:
    check_params(make, params, owner=owner)
    try:
        return make(*args, **given, **params)
    except (TypeError, ValueError, RuntimeError) as error:
        words = f"{owner} cannot be built: {error}"
        raise BadValueError(words, hint="choose other values of its parameters") from error


def encoder_params(encoder: str) -> tuple[str, ...]:
    """Names of an encoder's hyper-parameters; of several encoders each with its encoder's name before it."""
    names = encoder_names(encoder)
    if len(names) == 1:
        signature = inspect.signature(registry.get("encoder", encoder).__init__)
        params = tuple(name for name in signature.parameters if name not in ("self", "spec"))
        return params + tuple(key for key in KEYS if key not in params)
    return tuple(f"{one}.{name}" for one in names for name in encoder_params(one))


def check_one_encoder(network: Network, inputs: Sequence[Input], does: str, featuriser: str | None = None) -> None:
    """Refuse a network that reads several columns, or graphs of another featuriser, or gives no states of rows.

    ``does`` names the objective first, as in "infograph learns one encoder".
    """
    if len(inputs) != 1 or featuriser not in (None, inputs[0].spec.featuriser):
        read = " and ".join(f"{input_.column} ({input_.kind})" for input_ in inputs)
        hint = "name one column: --input COLUMN (in Python: inputs=[...])"
        raise UnsupportedError(f"{does}, and the model reads {read}", hint=hint)
    if not network.encoder.d_rows:
        words = f"{does.partition(' ')[0]} reads the states of rows, such as atoms"
        hint = "choose an encoder that does, such as gin, dmpnn or mpnn"
        raise UnsupportedError(f"{words}, which {inputs[0].encoder} does not give", hint=hint)

"""`propagate` against dense matrices, under permutation, derived twice, and compiled."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.segment import REDUCE, gather_sum, segment_sum


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    n_source, n_target = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    n_pairs = draw(st.integers(0, 12)) if n_source and n_target else 0
    source = draw(st.lists(st.integers(0, max(n_source - 1, 0)), min_size=n_pairs, max_size=n_pairs))
    target = draw(st.lists(st.integers(0, max(n_target - 1, 0)), min_size=n_pairs, max_size=n_pairs))
    as_rows = [torch.tensor(rows, dtype=torch.long) for rows in (source, target)]
    return Relation.from_pairs(*as_rows, n_source, n_target)


def dense(relation: Relation) -> Tensor:
    matrix = torch.zeros(relation.n_target, relation.n_source, dtype=torch.float64)
    return matrix.index_put((relation.target, relation.source), torch.ones((), dtype=torch.float64), accumulate=True)


def rows_of(n: int, d: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_loop(pairs: Tensor, relation: Relation, reduce: str) -> Tensor:
    out = pairs.new_zeros(relation.n_target, pairs.shape[1])
    for t in range(relation.n_target):
        mine = pairs[relation.target == t]
        if len(mine):
            values = {"sum": mine.sum(0), "mean": mine.mean(0), "max": mine.amax(0), "min": mine.amin(0)}
            values["std"] = (mine.var(0, correction=0) + 1e-5).sqrt()
            out[t] = values[reduce] if reduce in values else (mine.softmax(0) * mine).sum(0)
    return out


EXAMPLE = Relation.from_pairs(torch.tensor([0, 2, 2, 3, 0]), torch.tensor([1, 1, 0, 4, 1]), 4, 5)


@given(relations())
@settings(max_examples=60, deadline=None)
def test_sum_is_a_matrix_product_and_so_is_its_gradient(relation: Relation) -> None:
    x = rows_of(relation.n_source).requires_grad_()
    out = propagate(x, relation)
    torch.testing.assert_close(out, dense(relation) @ x)
    weight = rows_of(relation.n_target, seed=1)
    (grad,) = torch.autograd.grad((out * weight).sum(), x)
    torch.testing.assert_close(grad, dense(relation).T @ weight)


@given(relations(), st.sampled_from(sorted(REDUCE)))
@settings(max_examples=60, deadline=None)
def test_every_reduce_equals_a_loop(relation: Relation, reduce: str) -> None:
    x, edges = rows_of(relation.n_source), rows_of(relation.source.shape[0], seed=2)
    heard = rows_of(relation.n_target, seed=3)
    plain = propagate(x, relation, reduce=reduce)
    torch.testing.assert_close(plain, by_loop(x[relation.source], relation, reduce))
    pairs = x[relation.source] * edges + heard[relation.target]
    out = propagate(x, relation, target_rows=heard, edge_rows=edges, message=scaled, reduce=reduce)
    torch.testing.assert_close(out, by_loop(pairs, relation, reduce))
    updated = propagate(x, relation, target_rows=heard, reduce=reduce, update=lambda h, m: h - 2 * m)
    torch.testing.assert_close(updated, heard - 2 * plain)


@given(relations(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_renumbering_the_rows_renumbers_the_result(relation: Relation, random: object) -> None:
    new_source, new_target = list(range(relation.n_source)), list(range(relation.n_target))
    random.shuffle(new_source)  # type: ignore[attr-defined]
    random.shuffle(new_target)  # type: ignore[attr-defined]
    to_source = torch.tensor(new_source, dtype=torch.long)
    to_target = torch.tensor(new_target, dtype=torch.long)
    moved = Relation.from_pairs(
        to_source[relation.source], to_target[relation.target], relation.n_source, relation.n_target
    )
    x = rows_of(relation.n_source)
    there = torch.empty_like(x).index_copy(0, to_source, x)
    torch.testing.assert_close(propagate(there, moved).index_select(0, to_target), propagate(x, relation))


@pytest.mark.parametrize("reduce", sorted(REDUCE))
def test_differentiates_twice(reduce: str) -> None:
    x = rows_of(4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: propagate(x, EXAMPLE, reduce=reduce), (x,))
    assert torch.autograd.gradgradcheck(lambda x: propagate(x, EXAMPLE, reduce=reduce), (x,))


@pytest.mark.parametrize("largest", [0.0, 1.5])
def test_equal_largest_values_share_the_gradient(largest: float) -> None:
    x = torch.full((4, 2), largest, dtype=torch.float64).requires_grad_()
    propagate(x, EXAMPLE, reduce="max").sum().backward()
    assert x.grad is not None and x.grad[:, 0].tolist() == pytest.approx([2 / 3, 0, 4 / 3, 1])


def test_the_linear_operation_differentiates_three_times() -> None:
    x = rows_of(4).requires_grad_()
    value = (propagate(x, EXAMPLE) ** 4).sum()
    for _ in range(3):
        (grad,) = torch.autograd.grad(value, x, create_graph=True)
        value = grad.sum()
    y = x.detach().requires_grad_()
    expected = ((dense(EXAMPLE) @ y) ** 4).sum()
    for _ in range(3):
        (wanted,) = torch.autograd.grad(expected, y, create_graph=True)
        expected = wanted.sum()
    torch.testing.assert_close(grad, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_keeps_the_type_of_number(dtype: torch.dtype) -> None:
    x = rows_of(4).to(dtype).requires_grad_()
    out = propagate(x, EXAMPLE)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), dense(EXAMPLE) @ x.double(), rtol=2e-2, atol=2e-2)
    out.sum().backward()
    assert x.grad is not None and x.grad.dtype == dtype


@pytest.mark.parametrize("n", [257, 400])
def test_long_sums_in_bfloat16_are_added_up_in_more(n: int) -> None:
    relation = Relation.from_pairs(torch.arange(n), torch.zeros(n, dtype=torch.long), n, 1)
    ones = torch.ones(n, 3, dtype=torch.bfloat16)
    assert (propagate(ones, relation).float() - n).abs().max() <= 1  # 257 itself has no bfloat16
    assert propagate(torch.full_like(ones, 3.0), relation, reduce="mean").tolist() == [[3.0] * 3]


def test_under_autocast_the_rows_keep_their_type() -> None:
    linear = torch.nn.Linear(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        out = propagate(linear(rows_of(4).float()), EXAMPLE)
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    assert linear.weight.grad is not None and linear.weight.grad.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiles_whole_for_every_size(unchecked: ModuleType, backend: str) -> None:
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, dynamic=True, backend=backend)
    def layer(x: Tensor, relation: Relation) -> Tensor:
        return unchecked.propagate(x, relation, target_rows=x, update=lambda h, m: (h + m).relu())

    for n in (3, 5, 8):
        relation = unchecked.Relation.from_pairs(torch.arange(n), torch.arange(n).roll(1), n, n)
        _ = relation.transpose  # made ahead, as an encoder's `prepare` does
        x = rows_of(n).requires_grad_()
        out = layer(x, relation)
        expected = (x + dense(relation) @ x).relu()
        torch.testing.assert_close(out, expected)
        (grad,) = torch.autograd.grad(out.sum(), x)
        torch.testing.assert_close(grad, torch.autograd.grad(expected.sum(), x)[0])


@pytest.mark.parametrize("reduce", sorted(REDUCE))
def test_messages_compile_whole_too(unchecked: ModuleType, reduce: str) -> None:
    torch._dynamo.reset()
    relation = unchecked.Relation(EXAMPLE.source, EXAMPLE.offsets, EXAMPLE.n_source, EXAMPLE.n_target)
    layer = torch.compile(unchecked.propagate, fullgraph=True, dynamic=True, backend="eager")
    words = {"target_rows": rows_of(5), "edge_rows": rows_of(5, seed=1), "reduce": reduce}
    out = layer(rows_of(4), relation, message=scaled, **words)
    torch.testing.assert_close(out, propagate(rows_of(4), EXAMPLE, message=scaled, **words))


def scaled(source: Tensor, target: Tensor, edge: Tensor) -> Tensor:
    return source * edge + target


def test_says_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"source_rows .*\[3, 3\]"):
        propagate(rows_of(3), EXAMPLE)
    with pytest.raises(ValueError, match=r"target_rows .*\[4, 3\]"):
        propagate(rows_of(4), EXAMPLE, target_rows=rows_of(4))
    with pytest.raises(ValueError, match=r"edge_rows .*\[6, 3\]"):
        propagate(rows_of(4), EXAMPLE, edge_rows=rows_of(6), message=lambda s, t, e: s)
    with pytest.raises(ValueError, match="pass message"):
        propagate(rows_of(4), EXAMPLE, edge_rows=rows_of(5))
    with pytest.raises(ValueError, match="'median'"):
        propagate(rows_of(4), EXAMPLE, reduce="median")
    with pytest.raises(ValueError, match=r"message .*\[1, 3\]"):
        propagate(rows_of(4), EXAMPLE, message=lambda s, t, e: s[:1])


@pytest.mark.parametrize("shape", [(), (4,)])
def test_rows_have_a_width(unchecked: ModuleType, shape: tuple[int, ...]) -> None:
    propagate = unchecked.propagate  # a user's words, not those of the tests' check
    wrong, words = torch.zeros(shape), rf"\[{', '.join(map(str, shape))}\]"
    with pytest.raises(ValueError, match=rf"source_rows .*{words}"):
        propagate(wrong, EXAMPLE)
    with pytest.raises(ValueError, match=rf"target_rows .*{words}"):
        propagate(rows_of(4), EXAMPLE, target_rows=wrong)
    with pytest.raises(ValueError, match=rf"edge_rows .*{words}"):
        propagate(rows_of(4), EXAMPLE, edge_rows=wrong, message=scaled)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ([0, 4, 9], [0, 0, 0], "1 .*row 4"),
        ([0, 3], [4, 5], "1 .*row 5"),
        ([-1, 0], [0, 0], "0 .*row -1"),
        ([0, 0, 0], [0, 0, -2], "2 .*row -2"),
    ],
)
def test_a_row_outside_its_set_is_named(source: list[int], target: list[int], words: str) -> None:
    with pytest.raises(IndexError, match=words):
        Relation.from_pairs(torch.tensor(source), torch.tensor(target), 4, 5)


@pytest.mark.parametrize(("source", "target"), [([0, 1], [0]), ([[0, 1]], [[0, 1]])])
def test_pairs_have_two_ends(unchecked: ModuleType, source: list, target: list) -> None:
    with pytest.raises(ValueError, match="one length"):
        unchecked.Relation.from_pairs(torch.tensor(source), torch.tensor(target), 4, 5)


def test_the_transpose_of_the_transpose_is_the_relation() -> None:
    again = EXAMPLE.transpose.transpose
    assert again.source.equal(EXAMPLE.source) and again.offsets.equal(EXAMPLE.offsets)
    torch.testing.assert_close(dense(EXAMPLE.transpose), dense(EXAMPLE).T)
    x = rows_of(5)
    torch.testing.assert_close(gather_sum(x, EXAMPLE.transpose), dense(EXAMPLE).T @ x)


@pytest.mark.parametrize("reduce", sorted(REDUCE))
def test_rows_of_vectors_are_reduced_number_by_number(reduce: str) -> None:
    vectors = rows_of(4, 6).view(4, 2, 3)
    out = propagate(vectors, EXAMPLE, reduce=reduce)
    assert out.shape == (5, 2, 3)
    torch.testing.assert_close(out.flatten(1), propagate(vectors.flatten(1), EXAMPLE, reduce=reduce))


def test_reduce_may_be_a_function() -> None:
    out = propagate(rows_of(4), EXAMPLE, reduce=lambda pairs, relation: segment_sum(pairs, relation) ** 2)
    torch.testing.assert_close(out, (dense(EXAMPLE) @ rows_of(4)) ** 2)


def test_torch_func_goes_through() -> None:
    """Gradients, a gradient of a gradient, samples under vmap, and a module called with weights of its own."""
    x, many, matrix = rows_of(4), torch.stack([rows_of(4, seed=s) for s in range(3)]), dense(EXAMPLE)

    def loss(x: Tensor) -> Tensor:
        return (propagate(x, EXAMPLE) ** 3).sum()

    def expected(x: Tensor) -> Tensor:
        return ((matrix @ x) ** 3).sum()

    torch.testing.assert_close(torch.func.grad(loss)(x), torch.func.grad(expected)(x))
    torch.testing.assert_close(
        torch.func.jacrev(torch.func.grad(loss))(x), torch.func.jacrev(torch.func.grad(expected))(x)
    )
    torch.testing.assert_close(torch.vmap(lambda x: propagate(x, EXAMPLE))(many), matrix @ many)
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(many), torch.vmap(torch.func.grad(expected))(many))
    layer = torch.nn.Linear(3, 2).double()
    weights = {name: 2 * value.detach() for name, value in layer.named_parameters()}

    def called(weights: dict[str, Tensor], matrix: Tensor | None) -> Tensor:
        h = torch.func.functional_call(layer, weights, (x,))
        return ((propagate(h, EXAMPLE) if matrix is None else matrix @ h) ** 2).sum()

    mine, theirs = torch.func.grad(called)(weights, None), torch.func.grad(called)(weights, matrix)
    for name in weights:
        torch.testing.assert_close(mine[name], theirs[name])


def without_doubles(relation: Relation) -> Relation:
    pairs = sorted(set(zip(relation.source.tolist(), relation.target.tolist(), strict=True)))
    ends = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return Relation.from_pairs(ends[:, 0], ends[:, 1], relation.n_source, relation.n_target)

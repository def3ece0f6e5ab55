"""Cast Arrow's view types (string_view, binary_view), for which many of its functions are missing, to plain ones."""

from __future__ import annotations

import pyarrow as pa

_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def without_views(table: pa.Table) -> pa.Table:
    """The table with plain types in place of views, also within lists, structs and maps; no dictionary holds views.

    Example:
        >>> views = pa.table({"x": pa.array(["CCO"]).cast(pa.string_view()), "y": [1]})
        >>> without_views(views).schema.types
        [DataType(string), DataType(int64)]
    """
    schema = pa.schema([_field(field) for field in table.schema])
    return table if schema.types == table.schema.types else table.cast(schema)


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_type(field.type))


def _type(of: pa.DataType) -> pa.DataType:
    kind = pa.types
    if kind.is_struct(of):
        return pa.struct([_field(of.field(j)) for j in range(of.num_fields)])
    if kind.is_map(of):
        return pa.map_(_field(of.key_field), _field(of.item_field), of.keys_sorted)
    if kind.is_fixed_size_list(of):
        return pa.list_(_field(of.value_field), of.list_size)
    for is_list, make in (
        (kind.is_list, pa.list_), (kind.is_large_list, pa.large_list),
        (kind.is_list_view, pa.list_view), (kind.is_large_list_view, pa.large_list_view),
    ):  # fmt: skip
        if is_list(of):
            return make(_field(of.value_field))
    return _PLAIN.get(of, of)

"""Read tables from files, frames and lists, in five steps that ``rows`` takes in this order.

1. ``source``: open, unpack gzip, bytes to text.
2. ``formats`` chooses a reader, which gives chunks (``chunk``) of columns: ``delimited``, ``smi_sdf``, ``xyz``,
   ``npz``, ``xlsx``, ``parquet``, or ``frame`` of what is in memory.
3. ``roles``: which column is the molecule, the target, the unit, the qualifier; by ``names`` and ``entity_columns``.
4. ``values``: cells to numbers, by ``cells``, ``units`` and ``numbers``; ``targets``: their kinds and classes.
5. ``table``: the table, each row with its status and reason.
"""

"""From files to batches: ``read`` makes a table, ``standardise`` and ``audit`` look after its molecules, ``splits``
divide it, ``featurize`` and ``graph_store`` turn molecules into graphs, ``batch`` into tensors."""

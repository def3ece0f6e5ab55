"""From files to batches: ``read`` makes a table, ``standardised`` and ``audit`` look after its molecules, ``splits``
divide it, ``featurize`` and ``store`` turn molecules into graphs, ``batch`` into tensors."""

"""A training run, a file for each of its decisions, in the order in which ``train`` takes them.

``config`` merges recipe and keywords, ``start`` reads the file to start from, ``method`` makes the model, ``objective``
chooses what it minimises; ``rows`` (with ``target_notes``, ``unlabelled``, ``helpers``) reads the table,
``descriptors`` adds RDKit's, ``split`` divides the rows: ``prepare`` does all of these. ``baselines`` names what is
trained beside it; ``fit`` trains, with ``cross_validation`` before and ``refit`` after it, and ``model`` makes the
models of a ``result``, of which ``choice`` prefers one. ``tuning`` searches hyper-parameters between the two,
``command`` writes the best ones; ``corpus`` and ``generator`` are the runs of ``pretrain`` and ``train_generator``.
"""

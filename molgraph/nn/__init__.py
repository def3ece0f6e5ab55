"""The core: rows speak along a relation.

``relation`` who speaks to whom; ``passing`` the one verb, ``propagate``; ``pairs``, ``segment`` and ``checks`` their
arithmetic and their words for what does not fit; ``messages``, ``updates``, ``readouts`` what a line of the models'
table is put together from; ``distinct`` which rows a model visits; ``perceptron`` and ``activations`` the usual small
parts; ``encoder`` what a model gives. Shapes stand in the annotations and are checked under pytest alone.
"""

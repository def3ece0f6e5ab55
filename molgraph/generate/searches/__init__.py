"""Searches for better molecules, each registered by name.

``search`` has the contract: ``ask`` for molecules, ``tell`` their scores; ``latent`` that of searches in the latent
space of a generator. ``sampling`` is the control, ``graph-ga`` breeds molecular graphs, ``ascent`` climbs a fitted
property head, ``bayes`` maximises an expected improvement, ``cyclegan`` translates poor molecules into good ones.
"""

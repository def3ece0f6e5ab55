"""Searches in the latent space of a generator, each registered by name.

``search`` has the contract: ``ask`` for latent vectors, ``tell`` their scores. ``sampling`` is the control, ``ascent``
climbs a fitted property head, ``bayes`` maximises an expected improvement, ``cyclegan`` translates poor molecules into
good ones.
"""

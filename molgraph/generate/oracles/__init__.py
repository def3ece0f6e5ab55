"""Oracles: scores of molecules that a search maximises, each registered by name.

``oracle`` has the contract, ``properties``, ``similarity`` and ``model`` the registered ones, ``combined`` reads
several with weights and bounds ("qed:1,sa<4"), and ``journal`` caches, counts and bounds their calls.
"""

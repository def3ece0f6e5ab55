"""Transforms: from the values of an oracle to a desirability from 0 to 1, each registered by name.

``transform`` has the contract, ``curves`` the members: sigmoids, ramps, steps, windows.
"""

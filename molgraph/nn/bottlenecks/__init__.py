"""Bottlenecks: Gaussian posteriors, those that a flow bends, and the associative prior."""

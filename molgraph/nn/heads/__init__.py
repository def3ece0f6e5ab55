"""Output layers: a perceptron, and one that predicts a mean and a variance."""

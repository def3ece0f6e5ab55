"""Junction trees: split a molecule into rings, bonds and branching atoms, and put it together again."""

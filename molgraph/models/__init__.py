"""The models: one paper, one file. The registry imports the file of an encoder's name when it is asked for.

| module | rows | relation | message | update | readout | objective |
|---|---|---|---|---|---|---|
| ``mpnn`` | atoms | bonds | edge network | GRU | set2set | supervised |
| ``dmpnn`` | directed bonds | next bond, no U-turn | sum | skip + ReLU | incoming sum, mean | supervised |
| ``gin`` | atoms | bonds | sum | perceptron | sum of every layer | supervised |
| ``schnet`` | atoms | radius | continuous filter | residual | sum | supervised |
| ``deepdta`` | tokens | windows | convolution | ReLU | maximum | supervised |
| ``dag`` | atoms as seen from a root | shortest ways to it | sum | perceptron | sum of the roots | supervised |
| ``pyg_conv`` | atoms | bonds | the convolution's | skip + ReLU | mean | supervised |
"""

"""The models: one paper, one file. The registry imports the file of an encoder's name when it is asked for."""

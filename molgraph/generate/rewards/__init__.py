"""Terms that a search adds to its scores, such as a bonus for scaffolds that it has not met."""

"""The 2-simplicial Transformer: Clift et al., 2019, and agents in BoxWorld."""

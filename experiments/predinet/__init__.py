"""PrediNet and the Relations Game: Shanahan et al., 2020."""

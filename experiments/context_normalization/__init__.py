"""Temporal context normalization: Webb et al., 2020."""

"""Normalizations over the steps of a sequence."""

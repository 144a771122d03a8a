"""Slots: sets of vectors that share a law, a memory or an image."""

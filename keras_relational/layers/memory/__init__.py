"""Memories that are written and read step by step."""

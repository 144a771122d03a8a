"""Attention to entities, pairs, and relations."""

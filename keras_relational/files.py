"""Files that are whole or not there."""

import os


def write_aside(path, content):
    """Writes a whole file or none: beside its place, then into it."""
    aside = path.with_name(path.name + ".partial")
    aside.write_bytes(content)
    os.replace(aside, path)

"""Makes our docstrings ready for the documentation site.

Keras' section "Call arguments" becomes a list of arguments, and examples
(`>>>`) become blocks of code.
"""

import re

import griffe

# An example, up to an empty line or the end.
_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n *\S.*)*", re.MULTILINE)


class Sections(griffe.Extension):
    """Changes docstrings as they are read."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = prepared(obj.docstring.value)


def prepared(docstring):
    """A docstring that the site can show."""
    title = "Other Parameters: Call arguments"
    docstring = docstring.replace("\nCall arguments:", f"\n{title}")

    def block(found):
        indent = found[1]
        return f"{indent}```pycon\n{found[0]}\n{indent}```"

    return _EXAMPLE.sub(block, docstring)

"""A web page on which one can try the library's trained models.

    python -m keras_relational.playground

Each page is a kind of preset:

- `relations_game`: place objects on a board. The page shows the answer, and
  where the heads look that decide it.
- `boxworld`: play a puzzle, or let the agent move, with its attention.
- `rules`: choose the symbols of a rule, and see which memories are read.
- `video`: watch a video that the model continues.

`serve` starts the server from Python. It needs the extra `serving`.
`Playground` gives the same answers without a server.
"""

from keras_relational.playground.server import Playground
from keras_relational.playground.server import serve

__all__ = ["Playground", "serve"]

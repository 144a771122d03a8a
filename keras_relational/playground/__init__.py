"""Pages on which one can try trained models.

    python -m keras_relational.playground

A page is JavaScript that knows the rules of its task: it draws the inputs, runs
the preset's network on them, and shows and judges the answer. The same pages
stand in the documentation site, where the browser runs the network from an ONNX
file, and on a local server, which runs the Keras model.

- `relations`: place objects on a board, and see which places heads compare.
- `boxworld`: solve a puzzle beside an agent.
- `set_game`: find a set among five cards.
- `rules`: choose or draw the symbols of a rule.
- `sorting`: put ten cards in order.
- `video`: watch a ball that the model continues.
- `analogies`: A is to B as C is to what?

`serve` starts the server from Python. It needs the extra `serving`.
`Playground` gives the same without a server.
"""

from keras_relational.playground.server import Playground
from keras_relational.playground.server import serve

__all__ = ["Playground", "serve"]

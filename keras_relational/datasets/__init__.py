"""Data sets of the papers: each module makes NumPy arrays from a seed.

Nothing is downloaded. Most files have `generate(..., seed)`, which makes
examples, and `load_data(..., seed)`, which returns `(x_train, y_train),
(x_test, y_test)` as in `keras.datasets`. Images are uint8.

In most files the training set of `load_data(..., seed=s)` has the seed `[s,
0]`, which for NumPy is `s` itself. So `generate(..., seed=s)` makes it again.
For fresh examples take another seed.

Relations in images (PrediNet):

- `relations_game`: which relation holds among the objects of an image?

Analogies and rules (context normalization, ESBN):

- `vaec`: the Visual Analogy Extrapolation Challenge.
- `visual_analogies`: analogies between rows of panels.
- `distribution_of_three`: abstract rules over fillers never seen before.

Objects as vectors (Abstractor, relational convolutions):

- `ordered_objects`: which of two comes first, and how are ten sorted?
- `set_game`: is there a set among these cards?

Sequences and videos (SCOFF, RIMs):

- `adding`: the sum of the marked numbers of a sequence.
- `dynamic_objects`: a square that moves and changes its size.
- `single_ball`: a ball that moves in one of several ways.
- `bouncing_balls`: balls that collide with walls and with each other.
- `intuitive_physics`: could this clip have happened?

Helpers of several data sets:

- `balanced_labels`: labels in equal shares.
- `shapes`: draws discs, squares and triangles.
- `npz`, `png`: read published files, and refuse damaged ones.
"""

from keras_relational.datasets import adding
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import dynamic_objects
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import ordered_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import set_game
from keras_relational.datasets import single_ball
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies

__all__ = [
    "adding",
    "bouncing_balls",
    "distribution_of_three",
    "dynamic_objects",
    "intuitive_physics",
    "ordered_objects",
    "relations_game",
    "set_game",
    "single_ball",
    "vaec",
    "visual_analogies",
]

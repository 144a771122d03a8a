from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import dynamic_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies

__all__ = [
    "distribution_of_three",
    "dynamic_objects",
    "relations_game",
    "vaec",
    "visual_analogies",
]

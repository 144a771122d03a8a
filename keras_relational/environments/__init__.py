from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.environments import random_bits

__all__ = ["boxworld", "goto_object_maze", "random_bits"]

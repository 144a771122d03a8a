from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze

__all__ = ["boxworld", "goto_object_maze"]

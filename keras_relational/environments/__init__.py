from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.environments.registration import register_worlds

__all__ = ["boxworld", "goto_object_maze"]

register_worlds()

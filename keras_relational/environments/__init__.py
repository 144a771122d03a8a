from keras_relational.environments import boxworld
from keras_relational.environments import random_bits

__all__ = ["boxworld", "random_bits"]

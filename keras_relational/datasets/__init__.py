from keras_relational.datasets import dynamic_objects
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies

__all__ = ["dynamic_objects", "relations_game", "vaec", "visual_analogies"]

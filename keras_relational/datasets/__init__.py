from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec

__all__ = ["relations_game", "vaec"]

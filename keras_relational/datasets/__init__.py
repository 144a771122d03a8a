from keras_relational.datasets import relations_game

__all__ = ["relations_game"]

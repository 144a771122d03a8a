from keras_relational.models.relations_classifier import relations_classifier

__all__ = ["relations_classifier"]

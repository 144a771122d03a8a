from keras_relational.models.relations_classifier import CENTRAL_MODULES
from keras_relational.models.relations_classifier import relations_classifier

__all__ = ["CENTRAL_MODULES", "relations_classifier"]

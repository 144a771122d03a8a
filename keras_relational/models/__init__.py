from keras_relational.models.analogy_scorer import NORMALIZATIONS
from keras_relational.models.analogy_scorer import ROW_NORMALIZATIONS
from keras_relational.models.analogy_scorer import analogy_scorer
from keras_relational.models.analogy_scorer import visual_analogy_scorer
from keras_relational.models.boxworld_agent import NETWORKS
from keras_relational.models.boxworld_agent import boxworld_agent
from keras_relational.models.object_predictor import image_autoencoder
from keras_relational.models.object_predictor import object_predictor
from keras_relational.models.relations_classifier import CENTRAL_MODULES
from keras_relational.models.relations_classifier import relations_classifier

__all__ = [
    "CENTRAL_MODULES",
    "NETWORKS",
    "NORMALIZATIONS",
    "ROW_NORMALIZATIONS",
    "analogy_scorer",
    "boxworld_agent",
    "image_autoencoder",
    "object_predictor",
    "relations_classifier",
    "visual_analogy_scorer",
]

"""Models around the mechanisms. Each function builds a `keras.Model`.

- Images: `relations_classifier`. Agents: `boxworld_agent`, with `NETWORKS`.
- Analogies: `analogy_scorer`, `visual_analogy_scorer`.
- Abstract rules: `filler_autoencoder`, `rule_learner`, `over_fillers`.
- The same model around each mechanism: `set_classifier`, with `SET_REASONERS`;
  `sorter`, which `reasoners.greedy_decode` lets sort.
- Videos: `video_predictor`; `roll_out_model` goes on from its own predictions.
- Trained models, as presets: `from_preset` loads one, `preset_names` lists
  those of the library, `preset_metadata` reads a card, and `save_to_preset`
  writes a preset.
- Roles of a model's outputs, states and parts: `declare` declares them, for any
  Keras model. `roles` (`Roles`) and `part` read them. Training, analysis and
  export depend on them. `named_outputs` is for Keras' export to ONNX or LiteRT.

Models of images have channels last. They expect integers from 0 to 255. They
also take floats: an image whose pixels are all below 2 is taken as one from 0
to 1, and any other as one from 0 to 255. A NumPy array with pixels below 0 or
above 255 is refused. In a tensor such pixels become 0 or 255.
"""

from keras_relational.models.analogy_scorer import analogy_scorer
from keras_relational.models.analogy_scorer import visual_analogy_scorer
from keras_relational.models.boxworld_agent import NETWORKS
from keras_relational.models.boxworld_agent import boxworld_agent
from keras_relational.models.declared_roles import Roles
from keras_relational.models.declared_roles import declare
from keras_relational.models.declared_roles import named_outputs
from keras_relational.models.declared_roles import part
from keras_relational.models.declared_roles import roles
from keras_relational.models.presets import from_preset
from keras_relational.models.presets import preset_metadata
from keras_relational.models.presets import preset_names
from keras_relational.models.presets import save_to_preset
from keras_relational.models.reasoners import SET_REASONERS
from keras_relational.models.reasoners import set_classifier
from keras_relational.models.reasoners import sorter
from keras_relational.models.relations_classifier import relations_classifier
from keras_relational.models.rule_learner import filler_autoencoder
from keras_relational.models.rule_learner import over_fillers
from keras_relational.models.rule_learner import rule_learner
from keras_relational.models.video_predictor import roll_out_model
from keras_relational.models.video_predictor import video_predictor

__all__ = [
    "NETWORKS",
    "SET_REASONERS",
    "Roles",
    "analogy_scorer",
    "boxworld_agent",
    "declare",
    "filler_autoencoder",
    "from_preset",
    "named_outputs",
    "over_fillers",
    "part",
    "preset_metadata",
    "preset_names",
    "relations_classifier",
    "roles",
    "roll_out_model",
    "rule_learner",
    "save_to_preset",
    "set_classifier",
    "sorter",
    "video_predictor",
    "visual_analogy_scorer",
]

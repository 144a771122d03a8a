"""Models of the papers. Each function builds a `keras.Model`.

- Relations Game (PrediNet): `relations_classifier`.
- BoxWorld (2-simplicial Transformer, and agents with a memory):
  `boxworld_agent`, with `NETWORKS`; `maze_memory`, with `MAZE_MEMORIES`.
- Analogies (temporal context normalization): `analogy_scorer` and
  `visual_analogy_scorer`.
- Abstract rules (ESBN): `filler_autoencoder`, `rule_learner` and
  `over_fillers`.
- The same model around each mechanism: `set_classifier`, with `SET_REASONERS`;
  `sorter`, which `greedy_decode` lets sort.
- Sequences and videos (SCOFF and RIMs): `adding_model`, with `ADDING_CORES`;
  `video_predictor` and `roll_out_model`, with `VIDEO_NETWORKS`;
  `bouncing_balls_predictor`, `single_ball_predictor`, `coordinates_predictor`,
  `intuitive_physics_predictor`, with `PHYSICS_CORES`; `video_core`, with
  `VIDEO_CORES`.
- Trained models, as presets: `from_preset` loads one, `preset_names` lists
  those of the library, `preset_metadata` reads a card, and `save_to_preset`
  writes a preset.
- Roles of a model's outputs, states and parts: `declare` declares them, for any
  Keras model. `roles` (`Roles`) and `part` read them. Training, analysis and
  export depend on them.

Models of images have channels last. They expect integers from 0 to 255. They
also take floats: an image whose pixels are all below 2 is taken as one from 0
to 1, and any other as one from 0 to 255. A NumPy array with pixels below 0 or
above 255 is refused. In a tensor such pixels become 0 or 255.
"""

from keras_relational.models.adding_model import ADDING_CORES
from keras_relational.models.adding_model import adding_model
from keras_relational.models.analogy_scorer import analogy_scorer
from keras_relational.models.analogy_scorer import visual_analogy_scorer
from keras_relational.models.boxworld_agent import NETWORKS
from keras_relational.models.boxworld_agent import boxworld_agent
from keras_relational.models.declared_roles import Roles
from keras_relational.models.declared_roles import declare
from keras_relational.models.declared_roles import part
from keras_relational.models.declared_roles import roles
from keras_relational.models.presets import from_preset
from keras_relational.models.presets import preset_metadata
from keras_relational.models.presets import preset_names
from keras_relational.models.presets import save_to_preset
from keras_relational.models.reasoners import SET_REASONERS
from keras_relational.models.reasoners import greedy_decode
from keras_relational.models.reasoners import set_classifier
from keras_relational.models.reasoners import sorter
from keras_relational.models.relations_classifier import relations_classifier
from keras_relational.models.rule_learner import filler_autoencoder
from keras_relational.models.rule_learner import over_fillers
from keras_relational.models.rule_learner import rule_learner
from keras_relational.models.video_predictor import PHYSICS_CORES
from keras_relational.models.video_predictor import VIDEO_CORES
from keras_relational.models.video_predictor import VIDEO_NETWORKS
from keras_relational.models.video_predictor import bouncing_balls_predictor
from keras_relational.models.video_predictor import coordinates_predictor
from keras_relational.models.video_predictor import intuitive_physics_predictor
from keras_relational.models.video_predictor import roll_out_model
from keras_relational.models.video_predictor import single_ball_predictor
from keras_relational.models.video_predictor import video_core
from keras_relational.models.video_predictor import video_predictor

__all__ = [
    "ADDING_CORES",
    "FILLERS",
    "NETWORKS",
    "PHYSICS_CORES",
    "SET_REASONERS",
    "VIDEO_CORES",
    "VIDEO_NETWORKS",
    "Roles",
    "adding_model",
    "analogy_scorer",
    "bouncing_balls_predictor",
    "boxworld_agent",
    "coordinates_predictor",
    "declare",
    "filler_autoencoder",
    "from_preset",
    "greedy_decode",
    "intuitive_physics_predictor",
    "maze_memory",
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
    "single_ball_predictor",
    "sorter",
    "video_core",
    "video_predictor",
    "visual_analogy_scorer",
]

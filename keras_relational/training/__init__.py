"""Trains the models of the papers, and measures what they learned.

- Any Keras model: `fit` trains on endless batches, in a run that can be killed
  and continued; `train_classifier` does the same with arrays. `Minibatches`
  draws batches. `compile_model`, `compile_scorer` and `compile_video_predictor`
  with `VIDEO_LOSSES` set up losses and optimizers.
  `accuracy` is the share of right answers, `predictions` all outputs.
- Few examples (Abstractor, and every mechanism beside it):
  `FEW_EXAMPLES`, `model_and_data`, `accuracy_after_few`; `places_so_far` and
  `sorted_places` of a sorter.
- Analogies and prediction (context normalization):
    - VAEC: `AnalogyBatches`, `analogy_inputs`, `adapt_normalization`,
      `solved_analogies`, `region_accuracies`, `embeddings`.
    - Panels: `VisualAnalogyBatches`, `VisualAnalogyFiles`,
      `visual_analogy_tests`, `visual_analogy_accuracies`,
      `visual_analogy_digest`.
    - Moving squares: `FrameBatches`, `frame_embeddings`,
      `dynamic_object_tests`, `prediction_error`.
- Abstract rules (ESBN): `pretrain_autoencoder`, `train_autoencoder`,
  `reconstructed_share`; `train_rule_learner`, `cross_entropy`, `as_put_out`,
  `nearest_filler`, `rule_accuracy`; `rule_fillers`, `rule_problems`,
  `rule_settings`; the papers' settings: `Preset`, `preset`,
  `other_task_preset`.
- Sequences and videos (SCOFF and RIMs): `adding_tests`, `adding_errors`;
  `VideoBatches`, `VideoSamples`, `roll_out_errors`, `simple_roll_out_errors`,
  `relative_error`, `relative_errors`; `plausibility`, `physics_tests`,
  `published_physics_tests`.

Agents train in `keras_relational.agents`.
"""

from keras_relational.training.adding import adding_errors
from keras_relational.training.adding import adding_tests
from keras_relational.training.boxworld_positions import PositionBatches
from keras_relational.training.boxworld_positions import position_student
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.rule_learners import pretrain_autoencoder
from keras_relational.training.rule_learners import rule_fillers
from keras_relational.training.rule_learners import rule_problems
from keras_relational.training.rule_learners import rule_settings
from keras_relational.training.rule_learners import train_rule_learner
from keras_relational.training.rules import Preset
from keras_relational.training.rules import as_put_out
from keras_relational.training.rules import cross_entropy
from keras_relational.training.rules import nearest_filler
from keras_relational.training.rules import other_task_preset
from keras_relational.training.rules import preset
from keras_relational.training.rules import reconstructed_share
from keras_relational.training.rules import rule_accuracy
from keras_relational.training.rules import train_autoencoder
from keras_relational.training.sample_efficiency import FEW_EXAMPLES
from keras_relational.training.sample_efficiency import accuracy_after_few
from keras_relational.training.supervised import VIDEO_LOSSES
from keras_relational.training.supervised import accuracy
from keras_relational.training.supervised import compile_model
from keras_relational.training.supervised import compile_video_predictor
from keras_relational.training.supervised import fit
from keras_relational.training.supervised import predictions
from keras_relational.training.supervised import train_classifier
from keras_relational.training.video import VideoBatches
from keras_relational.training.video import VideoSamples
from keras_relational.training.video import physics_tests
from keras_relational.training.video import plausibility
from keras_relational.training.video import published_physics_tests
from keras_relational.training.video import relative_error
from keras_relational.training.video import relative_errors
from keras_relational.training.video import roll_out_errors
from keras_relational.training.video import simple_roll_out_errors
from keras_relational.training.vtrace import vtrace

__all__ = [
    "FEW_EXAMPLES",
    "VIDEO_LOSSES",
    "AnalogyBatches",
    "FrameBatches",
    "Minibatches",
    "PositionBatches",
    "VideoBatches",
    "VideoSamples",
    "accuracy",
    "accuracy_after_few",
    "adapt_normalization",
    "adding_errors",
    "adding_tests",
    "compile_model",
    "compile_video_predictor",
    "fit",
    "frame_embeddings",
    "model_and_data",
    "nearest_filler",
    "other_task_preset",
    "physics_tests",
    "plausibility",
    "position_student",
    "predictions",
    "published_physics_tests",
    "relative_error",
    "relative_errors",
    "roll_out_errors",
    "simple_roll_out_errors",
    "train_classifier",
    "train_rule_learner",
    "visual_analogy_accuracies",
    "visual_analogy_digest",
    "visual_analogy_tests",
]

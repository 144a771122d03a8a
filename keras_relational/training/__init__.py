"""Trains the models of the papers, and measures what they learned.

- Any Keras model: `fit` trains on endless batches, in a run that can be killed
  and continued; `train_classifier` does the same with arrays. `Minibatches`
  draws batches, and `MinibatchModel` takes several optimizer steps in one
  compiled call. `compile_model`, `compile_scorer` and `adam` set up losses and
  optimizers.
  `accuracy` is the share of right answers, `predictions` all outputs.
- Few examples (Abstractor, and every mechanism beside it):
  `FEW_EXAMPLES`, `model_and_data`, `accuracy_after_few`; `places_so_far` and
  `sorted_places` of a sorter.
- Relations Game (PrediNet): `four_stage_transfer`, with `STAGES`;
  `transfer_figures`.
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
- Agents (2-simplicial Transformer, and agents with a memory): `PositionBatches`
  and `position_student`, for moves that a teacher labels; `vtrace`, the targets
  of IMPALA. The modules `impala`, `teacher`, `agent_runs` and `distributed`
  train agents on tf-agents. Import them by name: they need the extra `rl`.
"""

from keras_relational.training.analogies import AnalogyBatches
from keras_relational.training.analogies import adapt_normalization
from keras_relational.training.analogies import analogy_inputs
from keras_relational.training.analogies import embeddings
from keras_relational.training.analogies import region_accuracies
from keras_relational.training.analogies import solved_analogies
from keras_relational.training.boxworld_positions import PositionBatches
from keras_relational.training.boxworld_positions import position_student
from keras_relational.training.dynamic_objects import FrameBatches
from keras_relational.training.dynamic_objects import dynamic_object_tests
from keras_relational.training.dynamic_objects import frame_embeddings
from keras_relational.training.dynamic_objects import prediction_error
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.minibatches import MinibatchModel
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
from keras_relational.training.sample_efficiency import model_and_data
from keras_relational.training.sample_efficiency import places_so_far
from keras_relational.training.sample_efficiency import sorted_places
from keras_relational.training.supervised import accuracy
from keras_relational.training.supervised import adam
from keras_relational.training.supervised import compile_model
from keras_relational.training.supervised import compile_scorer
from keras_relational.training.supervised import fit
from keras_relational.training.supervised import predictions
from keras_relational.training.supervised import train_classifier
from keras_relational.training.transfer import STAGES
from keras_relational.training.transfer import four_stage_transfer
from keras_relational.training.transfer import transfer_figures
from keras_relational.training.visual_analogies import VisualAnalogyBatches
from keras_relational.training.visual_analogies import VisualAnalogyFiles
from keras_relational.training.visual_analogies import visual_analogy_accuracies
from keras_relational.training.visual_analogies import visual_analogy_digest
from keras_relational.training.visual_analogies import visual_analogy_tests
from keras_relational.training.vtrace import vtrace

__all__ = [
    "FEW_EXAMPLES",
    "STAGES",
    "AnalogyBatches",
    "FrameBatches",
    "MinibatchModel",
    "Minibatches",
    "PositionBatches",
    "Preset",
    "VisualAnalogyBatches",
    "VisualAnalogyFiles",
    "accuracy",
    "accuracy_after_few",
    "adam",
    "adapt_normalization",
    "analogy_inputs",
    "as_put_out",
    "compile_model",
    "compile_scorer",
    "cross_entropy",
    "dynamic_object_tests",
    "embeddings",
    "fit",
    "four_stage_transfer",
    "frame_embeddings",
    "model_and_data",
    "nearest_filler",
    "other_task_preset",
    "places_so_far",
    "position_student",
    "prediction_error",
    "predictions",
    "preset",
    "pretrain_autoencoder",
    "reconstructed_share",
    "region_accuracies",
    "rule_accuracy",
    "rule_fillers",
    "rule_problems",
    "rule_settings",
    "solved_analogies",
    "sorted_places",
    "train_autoencoder",
    "train_classifier",
    "train_rule_learner",
    "transfer_figures",
    "visual_analogy_accuracies",
    "visual_analogy_digest",
    "visual_analogy_tests",
    "vtrace",
]

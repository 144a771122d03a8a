"""Trains the models of the papers, and measures what they learned.

- Any Keras model: `fit` trains on endless batches, in a run that can be killed
  and continued; `train_classifier` does the same with arrays. `Minibatches`
  draws batches, and `MinibatchModel` takes several optimizer steps in one
  compiled call. `compile_model`, `compile_video_predictor` with `VIDEO_LOSSES`,
  and `adam` set up losses and optimizers.
  `accuracy` is the share of right answers, `predictions` all outputs.
- Few examples: `accuracy_after_few`.
- Relations Game (PrediNet): `four_stage_transfer`, with `STAGES`;
  `transfer_figures`.
- Sequences and videos (SCOFF and RIMs): `adding_tests`, `adding_errors`;
  `VideoBatches`, `VideoSamples`, `roll_out_errors`, `simple_roll_out_errors`,
  `relative_error`, `relative_errors`; `plausibility`, `physics_tests`,
  `published_physics_tests`.
- Agents (2-simplicial Transformer, and agents with a memory): `PositionBatches`
  and `position_student`, for moves that a teacher labels; `vtrace`, the targets
  of IMPALA. The modules `impala`, `teacher`, `agent_runs` and `distributed`
  train agents on tf-agents. Import them by name: they need the extra `rl`.
"""

from keras_relational.training.adding import adding_errors
from keras_relational.training.adding import adding_tests
from keras_relational.training.boxworld_positions import PositionBatches
from keras_relational.training.boxworld_positions import position_student
from keras_relational.training.minibatches import Minibatches
from keras_relational.training.minibatches import MinibatchModel
from keras_relational.training.sample_efficiency import accuracy_after_few
from keras_relational.training.supervised import VIDEO_LOSSES
from keras_relational.training.supervised import accuracy
from keras_relational.training.supervised import adam
from keras_relational.training.supervised import compile_model
from keras_relational.training.supervised import compile_video_predictor
from keras_relational.training.supervised import fit
from keras_relational.training.supervised import predictions
from keras_relational.training.supervised import train_classifier
from keras_relational.training.transfer import STAGES
from keras_relational.training.transfer import four_stage_transfer
from keras_relational.training.transfer import transfer_figures
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
    "STAGES",
    "VIDEO_LOSSES",
    "MinibatchModel",
    "Minibatches",
    "PositionBatches",
    "VideoBatches",
    "VideoSamples",
    "accuracy",
    "accuracy_after_few",
    "adam",
    "adding_errors",
    "adding_tests",
    "compile_model",
    "compile_video_predictor",
    "fit",
    "four_stage_transfer",
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
    "transfer_figures",
    "vtrace",
]

"""Reads trained models and finished runs: arrays, figures and tables.

Nothing here trains. Functions `plot_...` return matplotlib figures, functions
`draw_...` write them to files.

- Any model and run: `mean_and_spread`, `plot_learning_curves`,
  `plot_transfer_curves`; `mean_text`, `markdown_table`; `principal_components`
  (`PrincipalComponents`), `project`, `plot_components`; `save_figure`,
  `save_figure_and_arrays`.
- Relations Game (models of `models.relations_classifier`):
    - Outputs of the central module and its heads: `central_outputs`,
      `head_outputs`, `head_relations`, `plot_head_components`.
    - Attention of heads: `attention_maps`, `content_masks`, `object_attention`,
      `attended_locations`, `object_heads`, `head_weights`,
      `plot_attention_maps`, `plot_head_attention`.
    - Pruning of heads: `pruned_accuracy`, `pruning_curve`, `plot_pruning`,
      `head_effects`.
    - Files: `draw_central_outputs`, `draw_head_components`,
      `draw_head_attention`, `draw_attentive_heads`, `draw_pruning`.
    - Text: `board_as_text`, `proposition_as_text`.
- BoxWorld and the maze (agents):
    - Text: `puzzle_as_text`.
    - Episodes: `play`, `play_each`, `player_means`, `record`, `frames`,
      `shortest_lengths`, `by_level`.
    - Attention of Transformer blocks: `block_attention` (`BlockAttention`),
      `plot_block_attention`, `animate_attention`, `tile_attention`,
      `plot_tile_attention`.
    - Files: `draw_solved_share`, `draw_solved_episode`, `draw_tile_attention`,
      `draw_agent_schemata`. `agent_figures` plays test puzzles and draws one.
- Object files (SCOFF layers): `object_files`, `episode_object_files`,
  `plot_schemata`; `contingency`, `mutual_information`: schemata and labels.
- Abstract rules (ESBN): `bindings` (`Bindings`), `plot_retrieval`, `plot_keys`,
  `plot_predictions`, `draw_rule_learner`.
- Analogies and prediction: `accuracy_by_dimension`, `level_embeddings`,
  `plot_accuracy_by_region`, `plot_level_embeddings`, `draw_analogies`,
  `plot_predicted_frames`, `draw_predicted_frames`; `solved_by_kind`,
  `visual_analogy_figures`.
"""

from keras_relational.analysis.agent_pictures import agent_figures
from keras_relational.analysis.agent_pictures import draw_agent_schemata
from keras_relational.analysis.agent_pictures import draw_solved_episode
from keras_relational.analysis.agent_pictures import draw_solved_share
from keras_relational.analysis.agent_pictures import draw_tile_attention
from keras_relational.analysis.analogies import accuracy_by_dimension
from keras_relational.analysis.analogies import draw_analogies
from keras_relational.analysis.analogies import level_embeddings
from keras_relational.analysis.analogies import plot_accuracy_by_region
from keras_relational.analysis.analogies import plot_level_embeddings
from keras_relational.analysis.analogies import solved_by_kind
from keras_relational.analysis.analogies import visual_analogy_figures
from keras_relational.analysis.attention import attended_locations
from keras_relational.analysis.attention import attention_maps
from keras_relational.analysis.attention import content_masks
from keras_relational.analysis.attention import head_weights
from keras_relational.analysis.attention import object_attention
from keras_relational.analysis.attention import object_heads
from keras_relational.analysis.attention import plot_attention_maps
from keras_relational.analysis.attention import plot_head_attention
from keras_relational.analysis.block_attention import BlockAttention
from keras_relational.analysis.block_attention import animate_attention
from keras_relational.analysis.block_attention import block_attention
from keras_relational.analysis.block_attention import plot_block_attention
from keras_relational.analysis.components import PrincipalComponents
from keras_relational.analysis.components import central_outputs
from keras_relational.analysis.components import head_outputs
from keras_relational.analysis.components import head_relations
from keras_relational.analysis.components import plot_components
from keras_relational.analysis.components import plot_head_components
from keras_relational.analysis.components import principal_components
from keras_relational.analysis.components import project
from keras_relational.analysis.episodes import by_level
from keras_relational.analysis.episodes import frames
from keras_relational.analysis.episodes import play
from keras_relational.analysis.episodes import play_each
from keras_relational.analysis.episodes import player_means
from keras_relational.analysis.episodes import record
from keras_relational.analysis.episodes import shortest_lengths
from keras_relational.analysis.esbn_memory import Bindings
from keras_relational.analysis.esbn_memory import bindings
from keras_relational.analysis.esbn_memory import draw_rule_learner
from keras_relational.analysis.esbn_memory import plot_keys
from keras_relational.analysis.esbn_memory import plot_predictions
from keras_relational.analysis.esbn_memory import plot_retrieval
from keras_relational.analysis.learning_curves import mean_and_spread
from keras_relational.analysis.learning_curves import plot_learning_curves
from keras_relational.analysis.learning_curves import plot_transfer_curves
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.plotting import save_figure_and_arrays
from keras_relational.analysis.predinet_pictures import draw_attentive_heads
from keras_relational.analysis.predinet_pictures import draw_central_outputs
from keras_relational.analysis.predinet_pictures import draw_head_attention
from keras_relational.analysis.predinet_pictures import draw_head_components
from keras_relational.analysis.predinet_pictures import draw_pruning
from keras_relational.analysis.pruning import head_effects
from keras_relational.analysis.pruning import plot_pruning
from keras_relational.analysis.pruning import pruned_accuracy
from keras_relational.analysis.pruning import pruning_curve
from keras_relational.analysis.schemata import contingency
from keras_relational.analysis.schemata import episode_object_files
from keras_relational.analysis.schemata import mutual_information
from keras_relational.analysis.schemata import object_files
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.analysis.text import board_as_text
from keras_relational.analysis.text import markdown_table
from keras_relational.analysis.text import mean_text
from keras_relational.analysis.text import proposition_as_text
from keras_relational.analysis.text import puzzle_as_text
from keras_relational.analysis.tile_attention import plot_tile_attention
from keras_relational.analysis.tile_attention import tile_attention
from keras_relational.analysis.video_pictures import draw_predicted_frames
from keras_relational.analysis.video_pictures import plot_predicted_frames

__all__ = [
    "Bindings",
    "BlockAttention",
    "PrincipalComponents",
    "accuracy_by_dimension",
    "agent_figures",
    "animate_attention",
    "attended_locations",
    "attention_maps",
    "bindings",
    "block_attention",
    "board_as_text",
    "by_level",
    "central_outputs",
    "content_masks",
    "contingency",
    "draw_agent_schemata",
    "draw_analogies",
    "draw_attentive_heads",
    "draw_central_outputs",
    "draw_head_attention",
    "draw_head_components",
    "draw_predicted_frames",
    "draw_pruning",
    "draw_rule_learner",
    "draw_solved_episode",
    "draw_solved_share",
    "draw_tile_attention",
    "episode_object_files",
    "frames",
    "head_effects",
    "head_outputs",
    "head_relations",
    "head_weights",
    "level_embeddings",
    "markdown_table",
    "mean_and_spread",
    "mean_text",
    "mutual_information",
    "object_attention",
    "object_files",
    "object_heads",
    "play",
    "play_each",
    "player_means",
    "plot_accuracy_by_region",
    "plot_attention_maps",
    "plot_block_attention",
    "plot_components",
    "plot_head_attention",
    "plot_head_components",
    "plot_keys",
    "plot_learning_curves",
    "plot_level_embeddings",
    "plot_predicted_frames",
    "plot_predictions",
    "plot_pruning",
    "plot_retrieval",
    "plot_schemata",
    "plot_tile_attention",
    "plot_transfer_curves",
    "principal_components",
    "project",
    "proposition_as_text",
    "pruned_accuracy",
    "pruning_curve",
    "puzzle_as_text",
    "record",
    "save_figure",
    "save_figure_and_arrays",
    "shortest_lengths",
    "solved_by_kind",
    "tile_attention",
    "visual_analogy_figures",
]

"""Reads trained models and finished runs: arrays, figures and tables.

Nothing here trains. Functions `plot_...` return matplotlib figures, functions
`draw_...` write them to files.

- Any run: `plot_learning_curves`, `save_figure`, `save_videos`.
- Heads (models of `models.relations_classifier`): `attention_maps`,
  `plot_attention_maps`, `head_effects`; as text `board_as_text` and
  `proposition_as_text`.
- BoxWorld and the maze (agents):
    - Text: `puzzle_as_text`.
    - Episodes: `play`, `record`, `frames`.
    - Attention of Transformer blocks: `block_attention`, `animate_attention`.
- Object files (SCOFF layers): `object_files` (`ObjectFiles`),
  `episode_object_files`, `BURN_IN`, `schemata_in_use`, `contingency`,
  `mutual_information`, `label_tables`, `label_information`, `plot_schemata`,
  `plot_spatial_attention`, `draw_object_files`, `draw_roll_out`,
  `plot_roll_out_errors`, `roll_out_figures`, `ball_figures`,
  `coordinates_figures`.
- Abstract rules (ESBN): `bindings`, `plot_retrieval`.
"""

from keras_relational.analysis.analogies import accuracy_by_dimension
from keras_relational.analysis.analogies import draw_analogies
from keras_relational.analysis.analogies import level_embeddings
from keras_relational.analysis.analogies import plot_accuracy_by_region
from keras_relational.analysis.analogies import plot_level_embeddings
from keras_relational.analysis.analogies import solved_by_kind
from keras_relational.analysis.analogies import visual_analogy_figures
from keras_relational.analysis.attention import attention_maps
from keras_relational.analysis.attention import head_effects
from keras_relational.analysis.attention import plot_attention_maps
from keras_relational.analysis.block_attention import BlockAttention
from keras_relational.analysis.block_attention import animate_attention
from keras_relational.analysis.block_attention import block_attention
from keras_relational.analysis.block_attention import plot_block_attention
from keras_relational.analysis.episodes import by_level
from keras_relational.analysis.episodes import frames
from keras_relational.analysis.episodes import play
from keras_relational.analysis.episodes import record
from keras_relational.analysis.episodes import shortest_lengths
from keras_relational.analysis.esbn_memory import bindings
from keras_relational.analysis.esbn_memory import plot_retrieval
from keras_relational.analysis.learning_curves import plot_learning_curves
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.schemata import BURN_IN
from keras_relational.analysis.schemata import ObjectFiles
from keras_relational.analysis.schemata import contingency
from keras_relational.analysis.schemata import episode_object_files
from keras_relational.analysis.schemata import label_information
from keras_relational.analysis.schemata import label_tables
from keras_relational.analysis.schemata import mutual_information
from keras_relational.analysis.schemata import object_files
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.analysis.schemata import plot_spatial_attention
from keras_relational.analysis.schemata import save_videos
from keras_relational.analysis.schemata import schemata_in_use
from keras_relational.analysis.text import board_as_text
from keras_relational.analysis.text import proposition_as_text
from keras_relational.analysis.text import puzzle_as_text
from keras_relational.analysis.video_pictures import ball_figures
from keras_relational.analysis.video_pictures import coordinates_figures
from keras_relational.analysis.video_pictures import draw_object_files
from keras_relational.analysis.video_pictures import draw_roll_out
from keras_relational.analysis.video_pictures import plot_roll_out_errors
from keras_relational.analysis.video_pictures import roll_out_figures

__all__ = [
    "BURN_IN",
    "BlockAttention",
    "ObjectFiles",
    "accuracy_by_dimension",
    "animate_attention",
    "attention_maps",
    "ball_figures",
    "bindings",
    "block_attention",
    "board_as_text",
    "by_level",
    "contingency",
    "coordinates_figures",
    "draw_analogies",
    "draw_object_files",
    "draw_predicted_frames",
    "draw_roll_out",
    "draw_solved_episode",
    "draw_solved_share",
    "draw_tile_attention",
    "episode_object_files",
    "frames",
    "head_effects",
    "label_information",
    "label_tables",
    "level_embeddings",
    "mutual_information",
    "object_files",
    "play",
    "play_each",
    "player_means",
    "plot_attention_maps",
    "plot_block_attention",
    "plot_keys",
    "plot_learning_curves",
    "plot_level_embeddings",
    "plot_predicted_frames",
    "plot_predictions",
    "plot_retrieval",
    "plot_roll_out_errors",
    "plot_schemata",
    "plot_spatial_attention",
    "plot_tile_attention",
    "proposition_as_text",
    "puzzle_as_text",
    "record",
    "roll_out_figures",
    "save_figure",
    "save_videos",
    "schemata_in_use",
    "shortest_lengths",
    "tile_attention",
]

"""Asks a trained model where it attends, what it says and what it remembers.

Functions return arrays, text or matplotlib figures. Nothing here trains.

- Attention of heads (PrediNet and attention pooling): `attention_maps`,
  `plot_attention_maps`; `head_effects`, the heads that decide.
- Text: `board_as_text`, `proposition_as_text`, `puzzle_as_text`.
- Agents: `play`, `record` and `frames` of an episode; `block_attention` and
  `animate_attention` of Transformer blocks.
- Memory (ESBN): `bindings`, `plot_retrieval`.
- Object files and schemata (SCOFF): `object_files`, `episode_object_files`,
  `plot_schemata`; `contingency` and `mutual_information` with labels.
- Any run: `plot_learning_curves`, `save_figure`.

To look inside another layer, such as CoRelNet or the Abstractor, call it with
`return_attention_scores=True`. It also returns how it relates the entities.
"""

from keras_relational.analysis.attention import attention_maps
from keras_relational.analysis.attention import head_effects
from keras_relational.analysis.attention import plot_attention_maps
from keras_relational.analysis.block_attention import animate_attention
from keras_relational.analysis.block_attention import block_attention
from keras_relational.analysis.episodes import frames
from keras_relational.analysis.episodes import play
from keras_relational.analysis.episodes import record
from keras_relational.analysis.esbn_memory import bindings
from keras_relational.analysis.esbn_memory import plot_retrieval
from keras_relational.analysis.learning_curves import plot_learning_curves
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.schemata import contingency
from keras_relational.analysis.schemata import episode_object_files
from keras_relational.analysis.schemata import mutual_information
from keras_relational.analysis.schemata import object_files
from keras_relational.analysis.schemata import plot_schemata
from keras_relational.analysis.text import board_as_text
from keras_relational.analysis.text import proposition_as_text
from keras_relational.analysis.text import puzzle_as_text

__all__ = [
    "animate_attention",
    "attention_maps",
    "bindings",
    "block_attention",
    "board_as_text",
    "contingency",
    "episode_object_files",
    "frames",
    "head_effects",
    "mutual_information",
    "object_files",
    "play",
    "plot_attention_maps",
    "plot_learning_curves",
    "plot_retrieval",
    "plot_schemata",
    "proposition_as_text",
    "puzzle_as_text",
    "record",
    "save_figure",
]

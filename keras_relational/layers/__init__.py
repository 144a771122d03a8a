"""Keras layers that reason about relations between objects.

All take a set or a sequence `(batch, n, features)` and go into a Keras model
like any other layer.

The five mechanisms:

- `PrediNet`: which relations hold between the entities that its heads choose.
- `TwoSimplicialAttention`: attention of each entity to pairs of entities.
- `TemporalContextNormalization`: normalizes each feature over the sequence.
- `ESBN`: binds what it sees to symbols, and reasons about the symbols alone.
- `SCOFF` and `SCOFFCell`: object files that share a few laws of motion.

Beside them:

- `CoRelNet`: how similar entities are to each other, and nothing else.
- `Abstractor` and its `RelationalCrossAttention`: relations between entities
  that symbols name. `PositionalSymbols`, `PositionRelativeSymbols` and
  `SymbolicAttention` give the symbols.
- `DualAttention` and `DualAttentionBlock`: heads of self-attention beside heads
  of `RelationalAttention`, in a Transformer's encoder or decoder layer.
- `RelationalConvolution`: patterns of relations within groups of entities.
  `InnerProductRelations` gives the relations.
- `SlotAttention`: slots that compete for the entities. `SharedWorkspace`: a
  small memory through which slots speak to each other.
- Transformer blocks: `RelationalTransformerBlock`, with attention to entities;
  `SimplicialTransformerBlock`, with attention to pairs as well, and
  `VirtualEntities`, which it takes the pairs from.
- What the papers compare with:
    - For a set: `MultiHeadAttentionPooling`, `RelationNetwork`.
    - Normalizations: `BatchContextNormalization`, `SlidingWindowNormalization`;
      `normalization` makes one of `NORMALIZATIONS` by its name.
    - Recurrent: `RIMs` and `RIMsCell`, `RelationalMemoryCell`, `NTMCell`,
      `LayerNormLSTMCell`.
- Around them: `AppendCoordinates` gives each entity its place. `TimeFolded`
  applies a layer to each step.
  `SlotPooling` makes one vector of a set of slots. `EpisodicRNN` starts a cell
  anew where an episode begins. `LSTMKernel` initializes an LSTM as the authors
  of ESBN do.
"""

from keras_relational.layers.attention_pooling import MultiHeadAttentionPooling
from keras_relational.layers.coordinates import AppendCoordinates
from keras_relational.layers.corelnet import CoRelNet
from keras_relational.layers.episodic_rnn import EpisodicRNN
from keras_relational.layers.memory.esbn import ESBN
from keras_relational.layers.memory.lstm_controller import LSTMKernel
from keras_relational.layers.memory.neural_turing_machine import NTMCell
from keras_relational.layers.normalizations.alternatives import NORMALIZATIONS
from keras_relational.layers.normalizations.alternatives import (
    BatchContextNormalization,
)
from keras_relational.layers.normalizations.alternatives import (
    SlidingWindowNormalization,
)
from keras_relational.layers.normalizations.alternatives import normalization
from keras_relational.layers.normalizations.layer_norm_lstm import (
    LayerNormLSTMCell,
)
from keras_relational.layers.normalizations.temporal_context import (
    TemporalContextNormalization,
)
from keras_relational.layers.predinet import PrediNet
from keras_relational.layers.relation_network import RelationNetwork
from keras_relational.layers.relational_convolution import InnerProductRelations
from keras_relational.layers.relational_convolution import RelationalConvolution
from keras_relational.layers.slots.relational_memory import RelationalMemoryCell
from keras_relational.layers.slots.rims import RIMs
from keras_relational.layers.slots.rims import RIMsCell
from keras_relational.layers.slots.scoff import SCOFF
from keras_relational.layers.slots.scoff import SCOFFCell
from keras_relational.layers.slots.shared_workspace import SharedWorkspace
from keras_relational.layers.slots.slot_attention import SlotAttention
from keras_relational.layers.slots.slot_pooling import SlotPooling
from keras_relational.layers.time_folded import TimeFolded
from keras_relational.layers.transformer.abstractor import Abstractor
from keras_relational.layers.transformer.blocks import (
    RelationalTransformerBlock,
)
from keras_relational.layers.transformer.blocks import (
    SimplicialTransformerBlock,
)
from keras_relational.layers.transformer.blocks import VirtualEntities
from keras_relational.layers.transformer.dual_attention import DualAttention
from keras_relational.layers.transformer.dual_attention import (
    DualAttentionBlock,
)
from keras_relational.layers.transformer.dual_attention import (
    RelationalAttention,
)
from keras_relational.layers.transformer.relational_cross_attention import (
    RelationalCrossAttention,
)
from keras_relational.layers.transformer.symbols import PositionalSymbols
from keras_relational.layers.transformer.symbols import PositionRelativeSymbols
from keras_relational.layers.transformer.symbols import SymbolicAttention
from keras_relational.layers.transformer.two_simplicial_attention import (
    TwoSimplicialAttention,
)

__all__ = [
    "ESBN",
    "NORMALIZATIONS",
    "SCOFF",
    "Abstractor",
    "AppendCoordinates",
    "BatchContextNormalization",
    "CoRelNet",
    "DualAttention",
    "DualAttentionBlock",
    "EpisodicRNN",
    "InnerProductRelations",
    "LSTMKernel",
    "LayerNormLSTMCell",
    "MultiHeadAttentionPooling",
    "NTMCell",
    "PositionRelativeSymbols",
    "PositionalSymbols",
    "PrediNet",
    "RIMs",
    "RIMsCell",
    "RelationNetwork",
    "RelationalAttention",
    "RelationalConvolution",
    "RelationalCrossAttention",
    "RelationalMemoryCell",
    "RelationalTransformerBlock",
    "SCOFFCell",
    "SharedWorkspace",
    "SimplicialTransformerBlock",
    "SlidingWindowNormalization",
    "SlotAttention",
    "SlotPooling",
    "SymbolicAttention",
    "TemporalContextNormalization",
    "TimeFolded",
    "TwoSimplicialAttention",
    "VirtualEntities",
    "normalization",
]

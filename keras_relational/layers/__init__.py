from keras_relational.layers.attention_pooling import MultiHeadAttentionPooling
from keras_relational.layers.context_normalization import (
    TemporalContextNormalization,
)
from keras_relational.layers.coordinates import AppendCoordinates
from keras_relational.layers.episodic_rnn import EpisodicRNN
from keras_relational.layers.esbn import ESBN
from keras_relational.layers.layer_norm_lstm import LayerNormLSTMCell
from keras_relational.layers.lstm_controller import LSTMKernel
from keras_relational.layers.neural_turing_machine import NTMCell
from keras_relational.layers.normalization_baselines import NORMALIZATIONS
from keras_relational.layers.normalization_baselines import (
    BatchContextNormalization,
)
from keras_relational.layers.normalization_baselines import (
    SlidingWindowNormalization,
)
from keras_relational.layers.normalization_baselines import normalization
from keras_relational.layers.predinet import PrediNet
from keras_relational.layers.relation_network import RelationNetwork
from keras_relational.layers.relational_memory import RelationalMemoryCell
from keras_relational.layers.rims import RIMs
from keras_relational.layers.rims import RIMsCell
from keras_relational.layers.scoff import SCOFF
from keras_relational.layers.scoff import SCOFFCell
from keras_relational.layers.slot_pooling import SlotPooling
from keras_relational.layers.strided_convolution import StridedConv2D
from keras_relational.layers.time_folded import TimeFolded
from keras_relational.layers.transformer_blocks import (
    RelationalTransformerBlock,
)
from keras_relational.layers.transformer_blocks import (
    SimplicialTransformerBlock,
)
from keras_relational.layers.transformer_blocks import VirtualEntities
from keras_relational.layers.two_simplicial_attention import (
    TwoSimplicialAttention,
)

__all__ = [
    "ESBN",
    "NORMALIZATIONS",
    "SCOFF",
    "AppendCoordinates",
    "BatchContextNormalization",
    "EpisodicRNN",
    "LSTMKernel",
    "LayerNormLSTMCell",
    "MultiHeadAttentionPooling",
    "NTMCell",
    "PrediNet",
    "RIMs",
    "RIMsCell",
    "RelationNetwork",
    "RelationalMemoryCell",
    "RelationalTransformerBlock",
    "SCOFFCell",
    "SimplicialTransformerBlock",
    "SlidingWindowNormalization",
    "SlotPooling",
    "StridedConv2D",
    "TemporalContextNormalization",
    "TimeFolded",
    "TwoSimplicialAttention",
    "VirtualEntities",
    "normalization",
]

from keras_relational.layers.attention_pooling import MultiHeadAttentionPooling
from keras_relational.layers.coordinates import AppendCoordinates
from keras_relational.layers.episodic_rnn import EpisodicRNN
from keras_relational.layers.predinet import PrediNet
from keras_relational.layers.relation_network import RelationNetwork
from keras_relational.layers.strided_convolution import StridedConv2D
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
    "AppendCoordinates",
    "EpisodicRNN",
    "MultiHeadAttentionPooling",
    "PrediNet",
    "RelationNetwork",
    "RelationalTransformerBlock",
    "SimplicialTransformerBlock",
    "StridedConv2D",
    "TwoSimplicialAttention",
    "VirtualEntities",
]

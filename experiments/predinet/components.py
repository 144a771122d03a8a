"""Outputs of central modules, projected on their principal components.

Figs. 6b, S7 and S8 of Shanahan et al., 2020, *An Explicitly Relational Neural
Network Architecture*. Models are those of `models.relations_classifier`.
"""

import keras
import numpy as np

from keras_relational import models
from keras_relational import training
from keras_relational.analysis.attention import layer_with_heads
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.compiled_parts import once_for_each_model
from keras_relational.analysis.plotting import legend_below
from keras_relational.analysis.plotting import new_figure
from keras_relational.layers import PrediNet


def central_outputs(model, images, batch_size=250):
    """The output of the central module, `(batch, size)`: `R*` in Fig. 1b."""
    outputs = training.predictions(_central(model), images, batch_size)
    return outputs.astype("float32")


@once_for_each_model
def _central(model):
    central = models.part(model, "central")
    return CompiledPart(model, keras.Model(model.inputs[0], central.output))


def head_outputs(model, images, batch_size=250):
    """The output of each head: `(batch, num_heads, size)`.

    For a PrediNet this is `R^h = (D^h, P1^h, P2^h)`.
    """
    num_heads = layer_with_heads(model).num_heads
    outputs = central_outputs(model, images, batch_size)
    return outputs.reshape(len(outputs), num_heads, -1)


def head_relations(model, images):
    """The relations that each head finds: `(batch, num_heads, size)`.

    For a PrediNet these are `D^h`, without the two positions (section S2.1).
    """
    outputs = head_outputs(model, images)
    layer = layer_with_heads(model)
    if isinstance(layer, PrediNet):
        return outputs[..., : layer.num_relations]
    return outputs


def plot_components(points, labels, label_names):
    """Draws a panel of projected images for each architecture: Fig. S7."""
    figure = new_figure(3.2 * len(points), 3.6)
    panels = figure.subplots(1, len(points), squeeze=False)[0]
    for panel, (title, of_panel) in zip(panels, points.items(), strict=True):
        _scatter(panel, of_panel, labels)
        panel.set(title=title, xlabel="component 1", ylabel="component 2")
    _legend(figure, label_names)
    return figure


def plot_head_components(
    points, labels, held_out_points, held_out_labels, label_names, heads=None
):
    """Draws training and held-out images of each head: Figs. 6b and S8.

    Points are `(num_examples, num_heads, 2)`, both on the components of the
    training set. A head has two panels, with the same limits.
    """
    heads = range(points.shape[1]) if heads is None else list(heads)
    across = min(4, len(heads))
    rows = -(-len(heads) // across)
    size = 1.7 if rows > 1 else 2.8
    figure = new_figure(2 * size * across, 1.05 * size * rows + 0.8)
    grid = figure.subplots(rows, 2 * across, squeeze=False)
    pairs = grid.reshape(-1, 2)
    for head, pair in zip(heads, pairs, strict=False):
        of_pair = points[:, head], held_out_points[:, head]
        of_both = np.concatenate(of_pair)
        margin = 0.05 * np.ptp(of_both, axis=0) + 1e-6
        low, high = of_both.min(axis=0) - margin, of_both.max(axis=0) + margin
        for panel, title, of_panel, labels_of_panel in zip(
            pair,
            (f"head {head}", "held-out"),
            of_pair,
            (labels, held_out_labels),
            strict=True,
        ):
            _scatter(panel, of_panel, labels_of_panel)
            panel.set(
                title=title,
                xlabel="component 1",
                ylabel="component 2",
                xlim=(low[0], high[0]),
                ylim=(low[1], high[1]),
                xticks=[],
                yticks=[],
            )
            panel.label_outer()
    for panel in pairs[len(heads) :].flat:
        panel.set_axis_off()
    _legend(figure, label_names)
    return figure


def _scatter(panel, points, labels):
    """Draws points in the order of the examples, so that labels mix."""
    from matplotlib.colors import to_rgba_array

    colours = to_rgba_array([f"C{i}" for i in range(max(labels) + 1)])
    panel.scatter(*points.T, s=3, c=colours[labels], alpha=0.5, linewidths=0)


def _legend(figure, label_names):
    names = dict(enumerate(label_names))
    legend_below(figure, names, entry_width=2, linestyle="", marker="o")

"""Pictures of a model of the Relations Game, as files.

Shanahan et al., 2020, *An Explicitly Relational Neural Network Architecture*,
Figs. 6 and S7 to S10. Beside each picture lies an NPZ file with its arrays.
"""

import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_relational.analysis.attention import attended_locations
from keras_relational.analysis.attention import attention_maps
from keras_relational.analysis.attention import head_weights
from keras_relational.analysis.attention import object_attention
from keras_relational.analysis.attention import object_heads
from keras_relational.analysis.attention import plot_attention_maps
from keras_relational.analysis.attention import plot_head_attention
from keras_relational.analysis.components import central_outputs
from keras_relational.analysis.components import head_relations
from keras_relational.analysis.components import plot_components
from keras_relational.analysis.components import plot_head_components
from keras_relational.analysis.components import principal_components
from keras_relational.analysis.components import project
from keras_relational.analysis.plotting import save_figure
from keras_relational.analysis.plotting import save_figure_and_arrays
from keras_relational.analysis.pruning import plot_pruning


def draw_central_outputs(
    trained: Mapping[str, keras.Model],
    images: np.ndarray,
    labels: np.ndarray,
    label_names: Sequence[str],
    directory: pathlib.Path,
) -> None:
    """Draws the first two components of each central module: `outputs.png`.

    Args:
        trained: Dictionary from the title of a panel to a model of
            `models.relations_classifier`.
        images: uint8 array `(batch, 36, 36, 3)`.
        labels: Integer array `(batch,)`.
        label_names: A name for each label.
        directory: Folder to write to.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
    """
    points = {}
    for name, model in trained.items():
        outputs = central_outputs(model, images)
        points[name] = project(outputs, principal_components(outputs))
    figure = plot_components(points, labels, label_names)
    path = directory / "outputs"
    save_figure_and_arrays(figure, path, labels=labels, **points)


def draw_head_components(
    model: keras.Model,
    examples: tuple[np.ndarray, np.ndarray],
    held_out: tuple[np.ndarray, np.ndarray],
    label_names: Sequence[str],
    path: pathlib.Path,
) -> None:
    """Draws the first two components of each head's relations.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`.
        examples: Images and labels. The components are those of their
            relations.
        held_out: Images and labels that are projected on the same components.
        label_names: A name for each label.
        path: Path of the picture and its arrays, without an ending.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
        ValueError: If the central module has no heads.
    """
    (x, y), (x_held_out, y_held_out) = examples, held_out
    relations = head_relations(model, x)
    components = principal_components(relations)
    points = project(relations, components)
    others = project(head_relations(model, x_held_out), components)
    figure = plot_head_components(points, y, others, y_held_out, label_names)
    arrays = {"points": points, "held_out_points": others}
    save_figure_and_arrays(figure, path, **arrays)


def draw_head_attention(
    model: keras.Model, images: np.ndarray, directory: pathlib.Path
) -> np.ndarray:
    """Draws what each head looks at.

    Writes `attention_maps.png`, four images under the maps of four heads, and
    `head_attention.png`, a summary of all heads and images.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`.
        images: uint8 array `(batch, 36, 36, 3)`, some of which show objects.
        directory: Folder to write to.

    Returns:
        Integer array, the heads that attend to objects: `object_heads`.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
        ValueError: If the central module has no heads.
    """
    maps = attention_maps(model, images)
    figure = plot_attention_maps(images[:4], maps[:4])
    path = directory / "attention_maps"
    save_figure_and_arrays(figure, path, images=images, maps=maps)
    arrays: dict[str, Any] = {
        "objects": object_attention(maps, images),
        "locations": attended_locations(maps),
        "weights": head_weights(model),
    }
    figure = plot_head_attention(**arrays)
    save_figure_and_arrays(figure, directory / "head_attention", **arrays)
    return object_heads(arrays["objects"])


def draw_attentive_heads(
    model: keras.Model,
    images: np.ndarray,
    shown: np.ndarray,
    path: pathlib.Path,
    num_heads: int = 4,
) -> np.ndarray:
    """Draws the maps of the heads that look at objects most.

    A head has as much attention to objects as the smallest of its
    `object_attention`, in the mean over the images.

    Args:
        model: Model of `models.relations_classifier` with the central module
            `"predinet"` or `"mha"`.
        images: uint8 array `(batch, 36, 36, 3)`, by which the heads are chosen.
        shown: uint8 array `(n, 36, 36, 3)` of a few images to draw.
        path: Path of the PNG file to write.
        num_heads: Number of heads to draw.

    Returns:
        Integer array `(num_heads,)` of the heads, the most attentive one first.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the file cannot be written; the error names it.
        ValueError: If the central module has no heads.
    """
    objects = object_attention(attention_maps(model, images), images)
    heads = objects.min(axis=-1).mean(axis=0).argsort()[::-1][:num_heads]
    figure = plot_attention_maps(shown, attention_maps(model, shown), heads)
    save_figure(figure, path, dpi=150)
    return heads


def draw_pruning(
    accuracies: Mapping[str, np.ndarray], directory: pathlib.Path
) -> list[str]:
    """Draws the accuracy over the number of heads, and tells some figures.

    Args:
        accuracies: Dictionary from the name of a model to its array
            `(num_heads, num_subsets)` of `pruning_curve`.
        directory: Folder to write `pruning.png` to.

    Returns:
        List of lines of text, with the mean and the best accuracy of 1, 2, 4, 8
        and all heads of each model.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; the error names it.
    """
    figure = plot_pruning(accuracies)
    save_figure_and_arrays(figure, directory / "pruning", **accuracies)
    return [
        f"{name:>12}, {size:2} heads: {row.mean():.3f} (best {row.max():.3f})"
        for name, curve in accuracies.items()
        for size, row in enumerate(curve, start=1)
        if size in (1, 2, 4, 8, len(curve))
    ]

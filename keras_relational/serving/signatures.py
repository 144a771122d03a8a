"""The signatures of a SavedModel."""

import os

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2


def read_signatures(
    saved_model: str | os.PathLike,
) -> dict[str, meta_graph_pb2.SignatureDef]:
    """Reads the signatures of a SavedModel, without loading the model.

    Args:
        saved_model: Path of the folder that contains `saved_model.pb`.

    Returns:
        Dictionary from signature names to `SignatureDef` messages.

    Raises:
        ValueError: If the folder contains no SavedModel with the tag
            `"serve"`.
    """
    path = os.path.join(saved_model, "saved_model.pb")
    try:
        with open(path, "rb") as file:
            graphs = saved_model_pb2.SavedModel.FromString(file.read())
    except (FileNotFoundError, DecodeError) as error:
        raise ValueError(
            f"{saved_model} is not a SavedModel: {path} is missing or damaged. "
            "`export_model` writes one."
        ) from error
    for graph in graphs.meta_graphs:
        if "serve" in graph.meta_info_def.tags:
            return dict(graph.signature_def)
    raise ValueError(
        f"{path} has no graph with the tag 'serve'. `export_model` writes one."
    )

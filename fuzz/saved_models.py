"""SavedModels, which a server reads when it starts."""

import contextlib
import os
import sys
import tempfile

import numpy as np


def make_saved_models(folder):
    from fuzz import servers
    from fuzz.targets import targets

    for version in (1, 2):
        servers.export(targets()[0], folder, version, seed=version)


def read_saved_models(folder):
    """The answers of version 2, where the server serves it.

    Raises:
        ValueError: With what the server says, if it serves version 1 instead,
            as it should where 2 is damaged.
        RuntimeError: If it does neither.
    """
    from fuzz.targets import targets
    from keras_relational import serving

    inputs = targets()[0].inputs
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        try:
            with (
                _stderr_in(file),
                serving.serve(folder, "relations") as server,
            ):
                version = server.version
                answers = serving.predict_grpc(
                    server.grpc_address, inputs, "relations", timeout=60
                )
        except Exception as error:
            raise RuntimeError(
                f"The server does not start, or answer: {error!r}"
            ) from error
        file.seek(0)
        said = file.read()
    if version == 2:
        return answers
    right = _answers_of_version_1(folder)
    if not all(np.allclose(answers[x], right[x], atol=1e-5) for x in right):
        raise RuntimeError("Version 1 is served with other answers")
    raise ValueError(f"Version {version} is served, and it says: {said}")


_ANSWERS = {}


def _answers_of_version_1(folder):
    """They do not change: that version is never damaged."""
    import tensorflow as tf

    from fuzz.targets import targets

    if not _ANSWERS:
        model = tf.saved_model.load(os.path.join(folder, "1"))
        inputs = {k: tf.constant(v) for k, v in targets()[0].inputs.items()}
        outputs = model.signatures["serving_default"](**inputs)
        _ANSWERS.update({k: v.numpy() for k, v in outputs.items()})
    return _ANSWERS


@contextlib.contextmanager
def _stderr_in(file):
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def version(path):
    """What the server calls the version of a file; only 2 is damaged."""
    return "Version 2 "

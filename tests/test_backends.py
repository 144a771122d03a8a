"""Every layer and model trains here as on TensorFlow, from the same file.

Each model is saved, asked and trained for a step; a process with TensorFlow
loads the file and does the same. Run as a program, this file is that process.
"""

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from test_packaging import run_blocked

from keras_relational import layers
from keras_relational import models
from keras_relational.layers._strided_convolution import StridedConv2D
from keras_relational.models.relations_classifier import CENTRAL_MODULES
from keras_relational.models.rule_learner import SEQUENTIAL

ROOT = pathlib.Path(__file__).parents[1]
BATCH = 3


def sequences(layer, shape=(5, 6)):
    """A model of one layer."""
    return keras.Sequential([keras.Input(shape), layer])


def cell(cell):
    return sequences(keras.layers.RNN(cell))


def simplicial_block():
    entities = keras.Input((4, 6))
    virtual = layers.VirtualEntities(2)(entities)
    block = layers.SimplicialTransformerBlock(2, 3, 1, 3, 8)
    return keras.Model(entities, block(entities, virtual))


def workspace():
    slots = keras.Input((4, 6))
    memory = layers.VirtualEntities(2)(slots)
    return keras.Model(slots, layers.SharedWorkspace(2, 3)(slots, memory))


def with_symbols(symbols, layer):
    entities = keras.Input((4, 6))
    return keras.Model(entities, layer(entities, symbols(entities)))


def relational_convolution():
    entities = keras.Input((4, 6))
    relations = layers.InnerProductRelations(3)(entities)
    features = layers.RelationalConvolution(3, 2, pooling="max")(relations)
    return keras.Model(entities, features)


def episodic():
    inputs = [
        keras.Input((6,)),
        keras.Input((5,), dtype="bool"),
        keras.Input((4,)),
        keras.Input((4,)),
    ]
    frames, is_first, *states = inputs
    layer = layers.EpisodicRNN(keras.layers.LSTMCell(4))
    frames = keras.layers.RepeatVector(5)(frames)
    frames = keras.ops.reshape(frames, (-1, 6))
    return keras.Model(inputs, layer(frames, is_first, states))


# By the name of what is made, and of its variant.
MODELS = {
    "Abstractor": lambda: with_symbols(
        layers.SymbolicAttention(5, num_heads=2),
        layers.Abstractor(2, 3, 8, num_layers=2, activation="sigmoid"),
    ),
    "AppendCoordinates": lambda: keras.Sequential(
        [
            keras.Input((4, 5, 2)),
            layers.AppendCoordinates(),
            keras.layers.Dense(3),
        ]
    ),
    "BatchContextNormalization": lambda: sequences(
        layers.BatchContextNormalization()
    ),
    "CoRelNet": lambda: sequences(layers.CoRelNet()),
    "DualAttention": lambda: with_symbols(
        layers.SymbolicAttention(5), layers.DualAttention(1, 1, rotary=False)
    ),
    "DualAttentionBlock": lambda: with_symbols(
        layers.PositionRelativeSymbols(2), layers.DualAttentionBlock(2, 1, 8)
    ),
    "ESBN": lambda: sequences(layers.ESBN(7, 4, confidence=True)),
    "EpisodicRNN": episodic,
    "InnerProductRelations": lambda: sequences(
        layers.InnerProductRelations(3, 2)
    ),
    "LSTMKernel": lambda: sequences(
        keras.layers.LSTM(4, kernel_initializer=layers.LSTMKernel())
    ),
    "LayerNormLSTMCell": lambda: cell(layers.LayerNormLSTMCell(4)),
    "MultiHeadAttentionPooling": lambda: sequences(
        layers.MultiHeadAttentionPooling(2, 3, 4)
    ),
    "NTMCell": lambda: cell(layers.NTMCell(7, 4, 3)),
    "PositionRelativeSymbols": lambda: with_symbols(
        layers.PositionRelativeSymbols(2), layers.Abstractor(2, 3, 8)
    ),
    "PositionalSymbols": lambda: with_symbols(
        layers.PositionalSymbols(4), layers.RelationalCrossAttention(2, 3)
    ),
    "PrediNet": lambda: sequences(layers.PrediNet(2, 3, 4)),
    "RIMs": lambda: sequences(layers.RIMs(4, 3, 2)),
    "RIMsCell": lambda: cell(layers.RIMsCell(4, 3, 2, dynamics="gru")),
    "RelationNetwork": lambda: sequences(layers.RelationNetwork(4, 5)),
    "RelationalAttention": lambda: with_symbols(
        layers.PositionalSymbols(4),
        layers.RelationalAttention(2, 4, rotary=True),
    ),
    "RelationalConvolution": relational_convolution,
    "RelationalCrossAttention": lambda: with_symbols(
        layers.PositionRelativeSymbols(2),
        layers.RelationalCrossAttention(2, 3),
    ),
    "RelationalMemoryCell": lambda: cell(layers.RelationalMemoryCell(4, 3, 2)),
    "RelationalTransformerBlock": lambda: sequences(
        layers.RelationalTransformerBlock(2, 3, 8)
    ),
    "SCOFF": lambda: sequences(layers.SCOFF(4, 3, 2, dropout=0.2, seed=1)),
    # Unrolled: in the loop on JAX each step would draw the same noise.
    "SCOFF, separate keys": lambda: sequences(
        layers.SCOFF(4, 3, 2, schema_keys="separate", balance=0.1, seed=1)
    ),
    "SCOFFCell": lambda: sequences(
        keras.layers.RNN(
            layers.SCOFFCell(4, 3, 2, num_active=2, seed=1), unroll=True
        )
    ),
    "SharedWorkspace": workspace,
    "SimplicialTransformerBlock": simplicial_block,
    "SlidingWindowNormalization": lambda: sequences(
        layers.SlidingWindowNormalization(2)
    ),
    "SlotAttention": lambda: sequences(layers.SlotAttention(3, 4, 6, seed=1)),
    "SlotPooling": lambda: sequences(layers.SlotPooling(3, 4), (18,)),
    "StridedConv2D": lambda: sequences(
        StridedConv2D(4, 4, strides=2), (8, 8, 3)
    ),
    "SymbolicAttention": lambda: sequences(layers.SymbolicAttention(5)),
    "TemporalContextNormalization": lambda: sequences(
        layers.TemporalContextNormalization((2, 3))
    ),
    "TimeFolded": lambda: sequences(
        layers.TimeFolded(keras.layers.Dense(4)), (5, 6)
    ),
    "TwoSimplicialAttention": lambda: sequences(
        layers.TwoSimplicialAttention(2, 3)
    ),
    "TwoSimplicialAttention, determinant": lambda: sequences(
        layers.TwoSimplicialAttention(2, 3, score="determinant")
    ),
    "VirtualEntities": simplicial_block,
    "analogy_scorer": lambda: models.analogy_scorer(image_size=16),
    "boxworld_agent": models.boxworld_agent,
    "boxworld_agent, relational": lambda: models.boxworld_agent("relational"),
    "boxworld_agent, convolutional": lambda: models.boxworld_agent(
        "convolutional"
    ),
    "filler_autoencoder": models.filler_autoencoder,
    **{
        f"relations_classifier, {central}": lambda central=central: (
            models.relations_classifier(central)
        )
        for central in CENTRAL_MODULES
    },
    "roll_out_model": lambda: models.roll_out_model(video_predictor(), 2),
    **{
        f"rule_learner, {name}": lambda name=name: models.rule_learner(
            models.filler_autoencoder(), name, num_steps=9
        )
        for name in SEQUENTIAL
    },
    "set_classifier": lambda: models.set_classifier("transformer", 4, 6),
    "video_predictor": lambda: video_predictor(),
    "visual_analogy_scorer": lambda: models.visual_analogy_scorer(
        image_size=16
    ),
}

NOT_MADE = {
    # Tested in tests/models/: their dropout and noise differ from backend to
    # backend.
    "sorter",
    # Functions that choose layers or models of the above by name.
    "normalization",
    # Models that are saved, tested in tests/models/.
    "from_preset",
    "preset_metadata",
    "preset_names",
    "save_to_preset",
    # What a model declares, tested in tests/models/.
    "Roles",
    "declare",
    "named_outputs",
    "part",
    "roles",
    # Of a model that is trained, and never saved.
    "over_fillers",
}


def video_predictor():
    core = layers.SCOFF(
        4, 2, 2, seed=1, return_sequences=True, return_state=True
    )
    return models.video_predictor(core)


def inputs_of(model):
    """In their structure, which a Sequential model does not tell."""
    return model.inputs[0] if len(model.inputs) == 1 else model.input


def random_inputs(model):
    """Some inputs, each drawn by itself: backends differ in their order."""

    def inputs(tensor):
        rng = np.random.default_rng(0)
        shape = [5 if n is None else n for n in tensor.shape[1:]]
        shape = (BATCH, *shape)
        dtype = keras.backend.standardize_dtype(tensor.dtype)
        if dtype == "uint8":
            return rng.integers(0, 256, shape, dtype)
        if "int" in dtype:
            return rng.integers(0, 5, shape, dtype)
        if dtype == "bool":
            return rng.integers(0, 2, shape) > 0
        return rng.normal(size=shape).astype("float32")

    return keras.tree.map_structure(inputs, inputs_of(model))


def asked_and_trained(path):
    """Outputs of a model in a file, and its weights before and after a step."""
    model = keras.saving.load_model(path)
    arrays = random_inputs(model)
    outputs = [
        keras.ops.convert_to_numpy(x) for x in keras.tree.flatten(model(arrays))
    ]
    targets = np.random.default_rng(1).normal(
        size=(BATCH, sum(x[0].size for x in outputs))
    )
    before = model.get_weights()
    # All outputs as one vector, whatever their structure.
    flat = [
        keras.ops.reshape(x, (BATCH, -1))
        for x in keras.tree.flatten(model.outputs)
    ]
    flat = keras.ops.concatenate(flat, axis=1) if flat[1:] else flat[0]
    trained = keras.Model(inputs_of(model), flat)
    trained.compile(keras.optimizers.SGD(1.0), "mse", run_eagerly=True)
    # What is drawn at random is drawn for each example in turn.
    trained.fit(arrays, targets, shuffle=False, verbose=0)
    return outputs, before, model.get_weights()


def test_all_that_is_public_is_made():
    made = {name.split(",")[0] for name in MODELS} | NOT_MADE
    public = {
        name
        for package in (layers, models)
        for name in package.__all__
        if callable(getattr(package, name))
    }
    assert made - {"StridedConv2D"} == public


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow",
    reason="TensorFlow is what another backend is compared with",
)
def test_numbers_are_those_of_tensorflow(tmp_path):
    for name, new_model in MODELS.items():
        keras.utils.set_random_seed(0)
        new_model().save(tmp_path / f"{name}.keras")
    found = {
        name: asked_and_trained(tmp_path / f"{name}.keras") for name in MODELS
    }
    subprocess.run(
        [sys.executable, __file__, tmp_path],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        cwd=ROOT,
        check=True,
        timeout=500,
    )
    for name, (outputs, before, after) in found.items():
        with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as file:
            arrays = [file[key] for key in file.files]
        assert len(arrays) == len(outputs) + 2 * len(before)
        for one in outputs:
            other = arrays.pop(0)
            # A normalization of few examples enlarges rounding.
            atol = 1e-4 * max(1, np.abs(other).max())
            np.testing.assert_allclose(one, other, atol=atol, err_msg=name)
        theirs = arrays[len(before) :]
        for one, other in zip(before, arrays[: len(before)], strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
        for start, one, other in zip(before, after, theirs, strict=True):
            if "float" not in str(start.dtype):
                continue
            # The step is as far from theirs as rounding makes it.
            atol = 1e-3 * np.abs(other - start).max() + 1e-5
            np.testing.assert_allclose(one, other, atol=atol, err_msg=name)


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow",
    reason="that another backend needs no TensorFlow",
)
def test_the_supervised_path_needs_no_tensorflow(tmp_path):
    """From data to a model that is trained, kept, loaded and looked into."""
    done = run_blocked(
        f"""
        import sys
        import keras, numpy as np
        from keras_relational import analysis, models, runs, training
        from keras_relational.datasets import relations_game

        x, y, _ = relations_game.generate("between", 40, seed=0)
        model = models.relations_classifier(num_heads=2)
        with runs.Run({str(tmp_path)!r}, "test", {{}}) as run:
            curves = training.train_classifier(
                model, x, y, num_batches=4, batches_per_epoch=2,
                steps_per_execution=1, validation={{"some": (x, y)}},
                run=run, verbose=0,
            )
            run.save_model(model)
        assert np.isfinite(curves["loss"]).all()
        loaded = keras.saving.load_model({str(tmp_path / "model.keras")!r})
        np.testing.assert_allclose(
            loaded.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6
        )
        assert analysis.attention_maps(loaded, x[:2]).shape[0] == 2
        assert "tensorflow" not in sys.modules
        """,
        {"tensorflow", "tensorboard"},
        keras.backend.backend(),
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.keras")):
        outputs, before, after = asked_and_trained(path)
        np.savez(path.with_suffix(".npz"), *outputs, *before, *after)

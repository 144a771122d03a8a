import keras
import numpy as np
import pytest
from keras import ops

from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.datasets import bouncing_balls
from keras_relational.models.video_predictor import VIDEO_NETWORKS
from keras_relational.models.video_predictor import StackedFrames

SEQUENCES = {"return_sequences": True, "return_state": True}


def small_scoff(**kwargs):
    return layers.SCOFF(8, 2, 2, **SEQUENCES, **kwargs)


def random_frames(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, shape, dtype="uint8")


def small_rims():
    return layers.RIMs(8, 3, 2, **SEQUENCES)


# A core, and whether it sees positions.
CORES = {
    "scoff": (small_scoff, True),
    "scoff, one vector": (small_scoff, False),
    "scoff, lstm": (lambda: small_scoff(dynamics="lstm", num_active=1), True),
    "rims": (small_rims, False),
    "rims, positions": (small_rims, True),
    "relational memory": (
        lambda: keras.layers.RNN(
            layers.RelationalMemoryCell(8, 3, 2), **SEQUENCES
        ),
        False,
    ),
    "gru": (lambda: keras.layers.GRU(8, **SEQUENCES), False),
}


@pytest.mark.parametrize("core", CORES)
def test_the_past_alone_decides(core):
    build, positions = CORES[core]
    model = models.video_predictor(build(), 3, positions=positions)
    frames = random_frames(1, 4, 64, 64, 3)
    changed = frames.copy()
    changed[:, 2] = 255 - changed[:, 2]
    one, other = (ops.convert_to_numpy(model(x)) for x in (frames, changed))
    assert one.shape == (1, 4, 64, 64, 3)
    assert one.min() >= 0
    assert one.max() <= 1
    np.testing.assert_allclose(one[:, :2], other[:, :2], atol=1e-6)
    assert np.abs(one[:, 2] - other[:, 2]).max() > 1e-4
    assert np.abs(one[:, 3] - other[:, 3]).max() > 1e-6


def test_stacked_frames():
    frames = np.arange(1, 5, dtype="float32").reshape(1, 4, 1, 1, 1)
    stacked = ops.convert_to_numpy(StackedFrames(3)(frames))[0, :, 0, 0]
    np.testing.assert_array_equal(
        stacked, [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    )


@pytest.mark.parametrize(("num_stacked", "num_given"), [(1, 5), (3, 5), (3, 1)])
def test_roll_outs_take_predictions_for_frames(num_stacked, num_given):
    """Step by step, all from the beginning each time, it is the same."""
    keras.utils.set_random_seed(0)
    model = models.video_predictor(small_scoff(), num_stacked=num_stacked)
    frames = random_frames(2, num_given, 64, 64, 1)
    x = keras.Input((None, 64, 64, 1))
    y = x
    for layer in model.layers[2:]:
        y = layer(y)
        y = y[0] if isinstance(y, tuple | list) else y
    without_rescaling = keras.Model(x, y)
    so_far = frames / np.float32(255)
    for _ in range(4):
        predicted = ops.convert_to_numpy(without_rescaling(so_far))
        so_far = np.concatenate([so_far, predicted[:, -1:]], axis=1)
    for number in (1, 4):
        rolled = models.roll_out_model(model, number).predict(frames, verbose=0)
        expected = so_far[:, num_given : num_given + number]
        np.testing.assert_allclose(rolled, expected, atol=1e-5)


@pytest.mark.parametrize("num_stacked", [1, 2])
def test_a_roll_out_of_all_frames_is_trained_as_it_is_used(num_stacked):
    """Given frames are predicted as ever, and training computes the same."""
    keras.utils.set_random_seed(0)
    gru = keras.layers.GRU(8, **SEQUENCES)
    of_frames = {"positions": False, "image_size": 8, "networks": "linear"}
    model = models.video_predictor(gru, num_stacked=num_stacked, **of_frames)
    frames = random_frames(2, 4, 8, 8, 1)
    rolling = models.roll_out_model(model, 3, all_frames=True)
    assert rolling.output_shape == (None, None, 8, 8, 1)
    layer = models.part(rolling, "roll_out")
    assert layer.compute_output_shape((2, 4, 8, 8, 1)) == (2, 6, 8, 8, 1)
    rolled = ops.convert_to_numpy(rolling(frames))
    trained = ops.convert_to_numpy(rolling(frames, training=True))
    np.testing.assert_allclose(trained, rolled, atol=1e-6)
    predicted = ops.convert_to_numpy(model(frames))
    np.testing.assert_allclose(rolled[:, :4], predicted, atol=1e-6)
    after = models.roll_out_model(model, 3)(frames)
    np.testing.assert_allclose(rolled[:, 3:], after, atol=1e-6)


@pytest.mark.slow
def test_roll_outs_are_learned_through_all_their_frames():
    """Each step learns from the errors of later ones, with noise and XLA."""
    keras.utils.set_random_seed(0)
    core = small_scoff(value_dim=8, dropout=0.1)
    model = models.video_predictor(core, image_size=8, networks="linear")
    rolling = models.roll_out_model(model, 3)
    rolling.compile("sgd", "mse", jit_compile=True)
    frames = random_frames(4, 5, 8, 8, 1)
    before = [ops.convert_to_numpy(w) for w in model.trainable_variables]
    x, y = frames[:, :2], frames[:, 2:] / np.float32(255)
    losses = [rolling.train_on_batch(x, y) for _ in range(10)]
    assert losses[-1] < losses[0]
    for old, weight in zip(before, model.trainable_variables, strict=True):
        assert np.any(old != ops.convert_to_numpy(weight)), weight.path


def test_linear_networks_with_positions():
    """Each position sees its own part of a frame."""
    sizes = {"num_channels": 3, "num_stacked": 2, "image_size": 24}
    model = models.video_predictor(small_scoff(), **sizes, networks="linear")
    encoder = models.part(model, "encoder")
    frame = np.zeros((1, 1, 24, 24, 6), "float32")
    none = ops.convert_to_numpy(encoder(frame))[0, 0]
    frame[0, 0, 4, 17, 5] = 1  # Rows 3 to 5, columns 15 to 17.
    some = ops.convert_to_numpy(encoder(frame))[0, 0]
    assert some.shape == (8, 8, 64)
    changed = np.argwhere((some != none).any(-1))
    np.testing.assert_array_equal(changed, [[1, 5]])


def test_object_files_are_exchangeable():
    model = models.video_predictor(small_scoff())
    core, pooling = (models.part(model, x) for x in ("core", "pooling"))
    maps = np.random.default_rng(0).normal(size=(1, 3, 8, 8, 64))
    maps = maps.astype("float32")
    state = np.random.default_rng(1).normal(size=(1, 2, 8)).astype("float32")
    one, other = (
        pooling(core(maps, initial_state=[x.reshape(1, -1)])[0])
        for x in (state, state[:, ::-1])
    )
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_predictions_begin_around_the_mean_pixel(channels):
    keras.utils.set_random_seed(0)
    frames = random_frames(2, 3, 64, 64, channels)
    predicted = models.video_predictor(
        small_scoff(), num_channels=channels, mean_pixel=0.02
    )(frames)
    assert 0.01 < np.median(keras.ops.convert_to_numpy(predicted)) < 0.04
    default = models.video_predictor(small_scoff(), num_channels=channels)
    predicted = default(frames)
    assert 0.3 < np.median(keras.ops.convert_to_numpy(predicted)) < 0.7


@pytest.mark.parametrize("networks", VIDEO_NETWORKS)
@pytest.mark.slow
def test_frames_of_other_sizes(networks):
    keras.utils.set_random_seed(0)
    model = models.video_predictor(
        small_scoff(schema_keys="separate", balance=0.1, dropout=0.1),
        mean_pixel=0.02,
        positions=networks != "linear",
        image_size=24,
        networks=networks,
    )
    frames = random_frames(2, 5, 24, 24, 1)
    predicted = ops.convert_to_numpy(model(frames))
    assert predicted.shape == (2, 5, 24, 24, 1)
    assert 0.01 < np.median(predicted) < 0.04
    rolled = models.roll_out_model(model, 2)(frames)
    np.testing.assert_allclose(rolled[:, 0], predicted[:, -1], atol=1e-5)
    loss = "binary_crossentropy"
    training.compile_model(model, 1e-3, loss, convolutional=True)
    model.fit(frames, frames / np.float32(255), verbose=0)


def test_a_linear_decoder_reads_the_mean_of_the_object_files():
    model = models.video_predictor(
        small_scoff(), positions=False, image_size=8, networks="linear"
    )
    decoder = models.part(model, "decoder")
    assert sum(w.shape[0] == 64 for w in decoder.weights) == 1  # One bias.
    h = np.random.default_rng(0).normal(size=(1, 3, 2, 8)).astype("float32")
    one, swapped, mean = (
        ops.convert_to_numpy(decoder(x.reshape(1, 3, 16)))
        for x in (h, h[:, :, ::-1], np.repeat(h.mean(2, keepdims=True), 2, 2))
    )
    np.testing.assert_allclose(swapped, one, atol=1e-6)
    np.testing.assert_allclose(mean, one, atol=1e-6)


def test_the_core_keeps_its_name_and_gets_what_was_asked_for():
    core = layers.RIMs(8, 3, 2, name="mine", **SEQUENCES)
    model = models.video_predictor(core)
    assert models.part(model, "core") is core
    assert core.name == "mine"
    assert core.input.shape == (None, None, 8, 8, 64)
    # RIMs have dynamics of their own, and are not exchangeable.
    assert "pooling" not in models.roles(model).parts
    core = small_rims()
    models.video_predictor(core, positions=False)
    assert core.input.shape == (None, None, 512)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"Pass positions=False.*<GRU"):
        models.video_predictor(keras.layers.GRU(8, **SEQUENCES))
    with pytest.raises(ValueError, match="return_state=False"):
        models.video_predictor(keras.layers.GRU(8, return_sequences=True))
    model = models.video_predictor(small_scoff())
    with pytest.raises(ValueError, match="num_stacked=0"):
        models.video_predictor(small_scoff(), num_stacked=0)
    with pytest.raises(ValueError, match="mean_pixel=20"):
        models.video_predictor(small_scoff(), mean_pixel=20)
    with pytest.raises(ValueError, match=r"multiple of 8.*image_size=30"):
        models.video_predictor(small_scoff(), image_size=30)
    with pytest.raises(ValueError, match=r"'conv'.*convolutional, linear"):
        models.video_predictor(small_scoff(), networks="conv")
    with pytest.raises(ValueError, match=r"multiple of 8.*image_size=30"):
        models.video_predictor(small_scoff(), image_size=30, networks="linear")
    with pytest.raises(ValueError, match="num_frames=0"):
        models.roll_out_model(model, 0)


@pytest.mark.slow
def test_object_files_see_what_is_where():
    """Soon more is learned than what there is on average."""
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(32, 2, 2, **SEQUENCES)
    model = models.video_predictor(core)
    model.compile(
        training.supervised.adam(1e-3), "binary_crossentropy", jit_compile=False
    )
    for number in range(80):
        videos = bouncing_balls.generate("4balls", 16, 9, seed=[0, number])
        truth = videos[:, 1:] / np.float32(255)
        loss = model.train_on_batch(videos[:, :-1], truth)
        model.reset_metrics()
    mean = np.clip(truth.mean(axis=(0, 1)), 1e-3, 1 - 1e-3)
    of_mean = -(truth * np.log(mean) + (1 - truth) * np.log(1 - mean)).mean()
    assert loss < 0.9 * of_mean

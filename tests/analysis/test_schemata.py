"""Object files, and pictures of predicted videos."""

import keras
import numpy as np
import pytest
from keras import ops
from PIL import Image

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational import training
from keras_relational.analysis.schemata import ObjectFiles
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import single_ball


def small_model():
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 2, 3, return_sequences=True, return_state=True)
    return models.video_predictor(core)


def random_frames(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype="uint8")


@pytest.fixture(scope="module")
def frames():
    return random_frames(3, 4, 64, 64, 1)


@pytest.fixture(scope="module")
def found(frames):
    return analysis.object_files(small_model(), frames, batch_size=2)


def test_object_files(frames, found):
    assert found.inputs.shape == (3, 4, 1, 2, 64)
    assert found.schemata.shape == (3, 4, 2, 3)
    assert found.messages.shape == (3, 4, 4, 2, 2)
    for scores, axis in zip(found, (3, 3, 4), strict=True):
        np.testing.assert_allclose(scores.sum(axis), 1, atol=1e-5)
    alone = analysis.object_files(small_model(), frames[2:])
    np.testing.assert_allclose(alone.schemata, found.schemata[2:], atol=1e-5)


def test_object_files_of_a_sequential_model():
    scoff = layers.SCOFF(4, 2, 3)
    parts = [keras.Input((None, 2)), keras.layers.Dense(5), scoff]
    model = keras.Sequential([*parts, keras.layers.Dense(1)])
    x = np.random.default_rng(0).normal(size=(3, 6, 2)).astype("float32")
    found = analysis.object_files(model, x)
    _, scores = scoff(parts[1](x), return_attention_scores=True)
    np.testing.assert_allclose(found.schemata, scores[1], atol=1e-6)


@pytest.mark.parametrize("with_states", [False, True])
def test_object_files_of_a_model_with_a_mask(with_states):
    """They do what they do in the model, to padding and from its states."""
    scoff = layers.SCOFF(4, 2, 3)
    words = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(7, 5, mask_zero=True)(words)
    kwargs, initial = {}, None
    if with_states:
        initial = keras.layers.Dense(8)(x[:, 0])
        # Keras passes on no mask beside states.
        kwargs = {"initial_state": [initial], "mask": ops.not_equal(words, 0)}
    model = keras.Model(words, scoff(x, **kwargs))
    ids = np.array([[3, 1, 0], [2, 5, 6], [4, 0, 0]])
    found = analysis.object_files(model, ids)
    assert found.schemata[1].any(-1).all()
    np.testing.assert_array_equal(
        found.schemata.any(-1), np.repeat(ids[..., None] > 0, 2, axis=-1)
    )
    if with_states:
        kwargs = {"initial_state": [keras.Model(words, initial)(ids)]}
    embedded = keras.Model(words, x)(ids)
    _, (_, expected, _) = scoff(
        embedded, mask=ids > 0, return_attention_scores=True, **kwargs
    )
    np.testing.assert_allclose(found.schemata, expected, atol=1e-6)


def test_a_stateful_model_is_left_alone():
    model = keras.Sequential(
        [
            keras.Input((3, 5), batch_size=2),
            layers.SCOFF(4, 2, 3, stateful=True),
        ]
    )
    with pytest.raises(ValueError, match="is stateful"):
        analysis.object_files(model, np.zeros((2, 3, 5)))


def test_a_model_without_scoff():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="not one layer SCOFF but 0"):
        analysis.object_files(model, np.zeros((1, 2)))


def test_object_files_of_an_agent():
    """Frame by frame as the agent itself: its last state is the same."""
    cell = layers.SCOFFCell(4, 2, 3)
    model = models.boxworld_agent("convolutional", (5, 5, 3), cell=cell)
    images = random_frames(6, 5, 5, 3)
    found = analysis.episode_object_files(model, images)
    assert found.inputs.shape == (1, 6, 1, 2, 1)
    assert found.schemata.shape == (1, 6, 2, 3)
    np.testing.assert_allclose(found.schemata.sum(-1), 1, atol=1e-5)
    core = model.get_layer("core")
    features = keras.Model(model.inputs[0], core.input[0])(images[None])
    layer = layers.SCOFF(4, 2, 3)
    layer.build((1, 6, features.shape[-1]))
    layer.set_weights(cell.get_weights())
    _, (_, schemata, _) = layer(features[None], return_attention_scores=True)
    np.testing.assert_allclose(found.schemata, schemata, atol=1e-5)
    keras.config.set_dtype_policy("mixed_bfloat16")
    half = models.boxworld_agent(
        "convolutional", (5, 5, 3), cell=layers.SCOFFCell(4, 2, 3)
    )
    half.set_weights(model.get_weights())
    np.testing.assert_allclose(
        analysis.episode_object_files(half, images).schemata,
        found.schemata,
        atol=0.1,
    )
    gru = models.boxworld_agent(
        "convolutional", (5, 5, 3), cell=keras.layers.GRUCell(4)
    )
    with pytest.raises(ValueError, match="is no SCOFFCell"):
        analysis.episode_object_files(gru, images)


def test_schemata_in_use(found):
    schemata = np.zeros((1, 100, 2, 3))
    schemata[..., 2] = 1
    schemata[0, 0, 0] = [1, 0, 0]
    found = found._replace(schemata=schemata)
    assert analysis.schemata_in_use(found) == 1
    assert analysis.schemata_in_use(found, share=0.005) == 2
    # Files that are not updated take none.
    schemata[0, :, 1] = 0
    schemata[0, 5:, 0] = 0
    assert analysis.schemata_in_use(found, share=0.15) == 2


def test_contingency_and_mutual_information():
    labels = np.repeat([0, 1, 2], 50)
    one_to_one = analysis.contingency((labels + 1) % 3, labels)
    np.testing.assert_array_equal(one_to_one, 50 * np.eye(3)[[1, 2, 0]])
    assert analysis.mutual_information(one_to_one) == pytest.approx(1)
    with_another = analysis.contingency(labels, labels, num_schemata=4)
    np.testing.assert_array_equal(with_another, 50 * np.eye(3, 4))
    # A schema, the first one, that is never used.
    unused = np.pad(one_to_one, [(0, 0), (1, 0)])
    assert analysis.mutual_information(unused) == pytest.approx(1)
    assert analysis.mutual_information(np.ones((3, 2))) == pytest.approx(0)
    # Two labels told apart out of three: 1 − (2/3) log 2 / log 3.
    merged = analysis.contingency(np.minimum(labels, 1), labels)
    assert analysis.mutual_information(merged) == pytest.approx(
        1 - 2 / 3 * np.log(2) / np.log(3)
    )
    assert analysis.mutual_information(np.array([[3, 4]])) == 1
    with pytest.raises(ValueError, match=r"\(2,\), labels.shape=\(3,\)"):
        analysis.contingency([0, 1], [0, 1, 1])


def test_figures(tmp_path, frames, found):
    figure = analysis.plot_schemata(found, 1, labels=[0, 0, 1, 1])
    assert len(figure.axes) == 3
    # What is framed is what is taken.
    (taken,) = figure.axes[1].lines
    np.testing.assert_array_equal(
        taken.get_ydata(), found.schemata[1, :, 0].argmax(-1)
    )
    analysis.save_figure(figure, tmp_path / "schemata.png")
    figure = analysis.plot_spatial_attention(frames[0], found, every=2)
    assert len(figure.axes) == 3 * 2
    shown = figure.axes[5].get_images()[0].get_array()
    np.testing.assert_allclose(
        shown, found.inputs[0, 2].mean(0)[1].reshape(8, 8)
    )
    analysis.save_figure(figure, tmp_path / "attention.png")
    assert (tmp_path / "attention.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="5 positions"):
        analysis.plot_spatial_attention(
            frames[0], found._replace(inputs=found.inputs[..., :5])
        )


@pytest.mark.parametrize("channels", [1, 3])
def test_videos_side_by_side(tmp_path, channels):
    true = random_frames(5, 8, 8, channels)
    path = tmp_path / "videos.gif"
    analysis.save_videos([true, true / 255], path, milliseconds=50, scale=2)
    with Image.open(path) as gif:
        assert gif.n_frames == 5
        assert gif.size == (2 * 10 * 2, 10 * 2)
        assert gif.info["duration"] == 50
        if channels == 1:
            gif.seek(3)
            pixels = np.asarray(gif.convert("L")).astype(int)
            for left in (2, 22):  # The true one and the predicted one.
                shown = pixels[2:18:2, left : left + 16 : 2]
                assert np.abs(shown - true[3, ..., 0]).max() <= 1
    with pytest.raises(ValueError, match="one shape"):
        analysis.save_videos([true, true[:4]], path)


def test_figures_of_any_sequence_and_of_all_heads():
    rng = np.random.default_rng(0)
    frames = random_frames(4, 64, 64, 1)
    schemata = rng.random((2, 4, 2, 3))
    schemata[1, [0, 2], 0] = 0  # Not updated in these steps.
    found = analysis.ObjectFiles(rng.random((2, 4, 3, 2, 64)), schemata, None)
    figure = analysis.plot_spatial_attention(frames, found, 1, every=2)
    shown = figure.axes[5].get_images()[0].get_array()
    np.testing.assert_allclose(
        shown, found.inputs[1, 2].mean(0)[1].reshape(8, 8)
    )
    (taken,) = analysis.plot_schemata(found, 1).axes[0].lines
    np.testing.assert_array_equal(taken.get_xdata(), [1, 3])


def test_saved_whole(tmp_path):
    found = analysis.ObjectFiles(None, np.ones((1, 4, 2, 3)), None)
    figure = analysis.plot_schemata(found)
    analysis.save_figure(figure, tmp_path / "schemata.png", dpi=30)
    assert [path.name for path in tmp_path.iterdir()] == ["schemata.png"]
    assert (tmp_path / "schemata.png").read_bytes().startswith(b"\x89PNG")


def test_steps_after_a_change_are_left_out():
    labels = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]])
    # Right, but for the step of each change and the one after it.
    schemata = np.array([[0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0]])
    found = ObjectFiles(None, np.eye(2)[schemata][:, :, None], None)
    figures = [
        analysis.label_information(found, labels, 0, after)["contingency"]
        for after in (0, 1, 2)
    ]
    assert figures == [
        [[[5, 2], [2, 3]]],
        [[[5, 1], [1, 3]]],
        [[[5, 0], [0, 3]]],
    ]
    # What is left out is counted from the change, after `burn_in` too.
    tables = analysis.label_tables(found, labels, burn_in=3, after_change=2)
    assert tables[0].tolist() == [[2, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"No step is left.*burn_in=6"):
        analysis.label_tables(found, labels, burn_in=6)
    for other in (labels[:1], labels[:, :4], labels[:1, 0]):
        with pytest.raises(
            ValueError, match=r"a label for each.*\(2, 6, 1, 2\)"
        ):
            analysis.label_tables(found, other)
    with pytest.raises(ValueError, match=r"No step is left.*after_change=9"):
        analysis.label_tables(found, labels, burn_in=3, after_change=9)


def test_figures_of_a_ball(tmp_path):
    videos, labels, _ = single_ball.generate_switching(4, 9, image_size=16)
    model = models.single_ball_predictor(
        8, 1, 2, image_size=16, networks="linear"
    )
    figures = analysis.ball_figures(model, videos, labels, tmp_path)
    assert np.sum(figures["contingency"]) == 4 * 3
    # The dynamics change at step 5, which is the first that is counted.
    assert np.sum(figures["settled"]["contingency"]) == 4 * 1
    assert 0 < figures["roll_out_error"] < 1
    assert (tmp_path / "schemata.png").stat().st_size


def test_figures_of_coordinates(tmp_path):
    sequences, labels = single_ball.generate_coordinates(4, 9, 3, seed=0)
    model = models.coordinates_predictor(5, 3)
    figures = analysis.coordinates_figures(model, sequences, labels, tmp_path)
    assert np.shape(figures["contingency"]) == (1, 3, 3)
    assert np.sum(figures["settled"]["contingency"]) == 4 * 1
    found = analysis.object_files(model, sequences[:, :-1])
    again = analysis.label_information(found, labels)
    assert figures["information"] == again["information"]
    assert (tmp_path / "schemata.png").stat().st_size


@pytest.mark.parametrize("core", ["scoff", "gru"])
def test_figures_of_roll_outs(core, tmp_path):
    videos = bouncing_balls.generate("4balls", 2, 46, image_size=16)
    model = models.bouncing_balls_predictor(
        "4balls", core, 4, image_size=16, networks="linear"
    )
    figures = analysis.roll_out_figures(model, videos, tmp_path)
    errors = training.roll_out_errors(model, videos)
    assert figures["error_10"] == pytest.approx(errors[:10].mean())
    assert figures["error_30"] == pytest.approx(errors.mean())
    mean = figures["mean_image"]
    assert mean["error_30"] == pytest.approx(np.mean(mean["error_of_frames"]))
    assert len(figures["last_frame"]["error_of_frames"]) == 30
    assert ("schemata_in_use" in figures) == (core == "scoff")
    assert (tmp_path / "schemata.png").is_file() == (core == "scoff")
    assert (tmp_path / "rolled_out.gif").stat().st_size


def test_errors_of_roll_outs_are_drawn_as_they_are():
    runs = [[0.02, 0.04], [0.04, 0.06]]
    figure = analysis.plot_roll_out_errors(
        {"4balls": {"gru": runs, "mean image": [[0.1, 0.1]]}, "curtain": {}}
    )
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("4balls", "curtain")
    line, constant = left.lines
    np.testing.assert_array_equal(line.get_xdata(), [1, 2])
    np.testing.assert_allclose(line.get_ydata(), [0.03, 0.05])
    np.testing.assert_allclose(constant.get_ydata(), [0.1, 0.1])
    assert not right.lines
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["gru", "mean image"]

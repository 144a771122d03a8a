"""What schemata tell, and pictures of object files and of roll-outs."""

import argparse

import numpy as np
import pytest
from PIL import Image

from experiments.scoff.ball_coordinates import coordinates_predictor
from experiments.scoff.bouncing_balls import bouncing_balls_predictor
from experiments.scoff.bouncing_balls import roll_out_metrics
from experiments.scoff.bouncing_balls import save_videos
from experiments.scoff.results import plot_roll_out_errors
from experiments.scoff.schemata import label_information
from experiments.scoff.schemata import label_tables
from experiments.scoff.schemata import plot_spatial_attention
from experiments.scoff.schemata import schema_metrics
from experiments.scoff.schemata import schemata_in_use
from experiments.scoff.single_ball import ball_metrics
from experiments.scoff.single_ball import single_ball_predictor
from experiments.scoff.videos import roll_out_errors
from keras_relational import analysis
from keras_relational.analysis.schemata import ObjectFiles
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import single_ball


def random_frames(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype="uint8")


def test_schemata_in_use():
    schemata = np.zeros((1, 100, 2, 3))
    schemata[..., 2] = 1
    schemata[0, 0, 0] = [1, 0, 0]
    found = ObjectFiles(None, schemata, None)
    assert schemata_in_use(found) == 1
    assert schemata_in_use(found, share=0.005) == 2
    # Files that are not updated take none.
    schemata[0, :, 1] = 0
    schemata[0, 5:, 0] = 0
    assert schemata_in_use(found, share=0.15) == 2


@pytest.mark.parametrize("sequence", [0, 1])
def test_where_object_files_look(sequence):
    """The mean over all heads."""
    scores = np.random.default_rng(0).random((2, 4, 3, 2, 64))
    found = ObjectFiles(scores, None, None)
    frames = random_frames(4, 64, 64, 1)
    figure = plot_spatial_attention(frames, found, sequence, every=2)
    assert len(figure.axes) == 3 * 2
    shown = figure.axes[5].get_images()[0].get_array()
    expected = scores[sequence, 2].mean(0)[1]
    np.testing.assert_allclose(shown, expected.reshape(8, 8))


@pytest.mark.parametrize("channels", [1, 3])
def test_videos_side_by_side(tmp_path, channels):
    true = random_frames(5, 8, 8, channels)
    path = tmp_path / "videos.gif"
    save_videos([true, true / 255], path, milliseconds=50, scale=2)
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


def test_steps_after_a_change_are_left_out():
    labels = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]])
    # Right, but for the step of each change and the one after it.
    schemata = np.array([[0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0]])
    found = ObjectFiles(None, np.eye(2)[schemata][:, :, None], None)
    figures = [
        label_information(found, labels, 0, after)["contingency"]
        for after in (0, 1, 2)
    ]
    assert figures == [
        [[[5, 2], [2, 3]]],
        [[[5, 1], [1, 3]]],
        [[[5, 0], [0, 3]]],
    ]
    # What is left out is counted from the change, after `burn_in` too.
    tables = label_tables(found, labels, burn_in=3, after_change=2)
    assert tables[0].tolist() == [[2, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"No step is left.*burn_in=6"):
        label_tables(found, labels, burn_in=6)
    with pytest.raises(ValueError, match=r"No step is left.*after_change=9"):
        label_tables(found, labels, burn_in=3, after_change=9)


def test_figures_of_a_ball(tmp_path):
    videos, labels, _ = single_ball.generate_switching(4, 9, image_size=16)
    model = single_ball_predictor(8, 1, 2, image_size=16, networks="linear")
    figures = ball_metrics(model, videos, labels, tmp_path)
    assert np.sum(figures["contingency"]) == 4 * 3
    # The dynamics change at step 5, which is the first that is counted.
    assert np.sum(figures["settled"]["contingency"]) == 4 * 1
    assert 0 < figures["roll_out_error"] < 1
    assert (tmp_path / "schemata.png").stat().st_size


def test_figures_of_coordinates(tmp_path):
    sequences, labels = single_ball.generate_coordinates(4, 9, 3, seed=0)
    model = coordinates_predictor(5, 3)
    figures = schema_metrics(model, sequences, labels, tmp_path)
    assert np.shape(figures["contingency"]) == (1, 3, 3)
    assert np.sum(figures["settled"]["contingency"]) == 4 * 1
    found = analysis.object_files(model, sequences[:, :-1])
    again = label_information(found, labels)
    assert figures["information"] == again["information"]
    assert (tmp_path / "schemata.png").stat().st_size


@pytest.mark.parametrize("core", ["scoff", "gru"])
def test_figures_of_roll_outs(core, tmp_path):
    videos = bouncing_balls.generate("4balls", 2, 46, image_size=16)
    options = argparse.Namespace(
        task="4balls",
        core=core,
        units=4,
        num_object_files=None,
        num_schemata=4,
        gated_messages=False,
        image_size=16,
        networks="linear",
    )
    model = bouncing_balls_predictor(options, mean_pixel=0.5)
    figures = roll_out_metrics(model, videos, tmp_path)
    errors = roll_out_errors(model, videos)
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
    figure = plot_roll_out_errors(
        {"4balls": {"gru": runs, "mean image": [[0.1, 0.1]]}, "curtain": {}}
    )
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("4balls", "curtain")
    line, constant = left.lines
    np.testing.assert_array_equal(line.get_xdata(), [1, 2])
    np.testing.assert_allclose(line.get_ydata(), [0.03, 0.05])
    np.testing.assert_allclose(constant.get_ydata(), [0.1, 0.1])
    assert not right.lines
    names = [text.get_text() for text in left.texts]
    assert names == ["gru", "mean image"]

import numpy as np
import pytest

from keras_relational import analysis
from keras_relational import models
from keras_relational.datasets import dynamic_objects


def test_rows_are_true_and_predicted_frames():
    (sequence,) = dynamic_objects.generate(1, seed=0)
    predicted = np.random.default_rng(0).random((19, 64, 64, 1))
    figure = analysis.plot_predicted_frames(sequence, {"one": predicted}, 6)
    panels = figure.axes
    assert [panel.get_title() for panel in panels[:4]] == ["2", "8", "14", "20"]
    np.testing.assert_array_equal(
        panels[2].images[0].get_array(), sequence[13, ..., 0] / 255
    )
    np.testing.assert_array_equal(
        panels[6].images[0].get_array(), predicted[12, ..., 0]
    )
    assert panels[4].get_ylabel() == "one"


def test_saved_whole(tmp_path):
    (sequence,) = dynamic_objects.generate(1, seed=0)
    predicted = sequence[1:] / 255
    figure = analysis.plot_predicted_frames(sequence, {"one": predicted})
    analysis.save_figure(figure, tmp_path / "frames.png", dpi=30)
    assert [path.name for path in tmp_path.iterdir()] == ["frames.png"]
    assert (tmp_path / "frames.png").read_bytes().startswith(b"\x89PNG")


def test_draw_predicted_frames(tmp_path):
    model = models.object_predictor(models.image_autoencoder())
    (sequence,) = dynamic_objects.generate(1, seed=0)
    analysis.draw_predicted_frames(model, sequence, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["predicted.png"]


def test_other_numbers_of_frames_are_refused():
    (sequence,) = dynamic_objects.generate(1, seed=0)
    with pytest.raises(ValueError, match=r"\(19, 64, 64, 1\).*'one'.*\(20"):
        analysis.plot_predicted_frames(sequence, {"one": sequence})

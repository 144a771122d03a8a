import io
import sys

import numpy as np
import pytest

from keras_relational import analysis
from keras_relational.analysis.learning_curves import mean_and_spread
from keras_relational.analysis.plotting import GREY


def curves(*accuracies, batches_per_epoch=5_000):
    return {
        "batches": batches_per_epoch * np.arange(1, len(accuracies) + 1),
        "stripes_accuracy": np.array(accuracies),
    }


def test_mean_and_spread_over_seeds():
    runs = [curves(0.5, 0.7), curves(0.5, 0.9), curves(0.5, 0.8)]
    batches, mean, spread = mean_and_spread(runs, "stripes_accuracy")
    assert batches.tolist() == [5_000, 10_000]
    np.testing.assert_allclose(mean, [0.5, 0.8])
    np.testing.assert_allclose(spread, [0, np.sqrt(0.02 / 3)], atol=1e-12)


@pytest.mark.parametrize("rows", [1, 2])
def test_curves_can_come_from_a_file(rows, tmp_path):
    path = tmp_path / "curves.csv"
    lines = ["batches,stripes_accuracy", "5000,0.5", "10000,0.75"]
    path.write_text("\n".join(lines[: rows + 1]))
    run = np.genfromtxt(path, delimiter=",", names=True)

    batches, mean, spread = mean_and_spread([run], "stripes_accuracy")

    assert batches.tolist() == [5_000, 10_000][:rows]
    assert mean.tolist() == [0.5, 0.75][:rows]
    assert spread.tolist() == [0, 0][:rows]


def test_an_unknown_curve_is_named_beside_the_known_ones():
    with pytest.raises(ValueError, match=r"'loss'.*batches, stripes_accuracy"):
        mean_and_spread([curves(0.5)], "loss")


def test_runs_of_different_lengths_are_not_averaged():
    with pytest.raises(ValueError, match=r"\[5000, 10000\] batches"):
        mean_and_spread([curves(0.5), curves(0.5, 0.7)], "stripes_accuracy")


def test_one_line_an_architecture():
    figure = analysis.plot_learning_curves(
        {
            "predinet": [curves(0.5, 0.8), curves(0.5, 1)],
            "mha": [curves(0.5, 0.6)],
        }
    )
    (panel,) = figure.axes
    for line, expected in zip(panel.lines, ([50, 90], [50, 60]), strict=True):
        np.testing.assert_allclose(line.get_ydata(), expected)
    lowest, highest = panel.texts
    assert (lowest.get_text(), highest.get_text()) == ("mha", "predinet")
    assert lowest.get_position()[1] < highest.get_position()[1]
    assert panel.get_ylabel() == "stripes accuracy (%)"
    figure.savefig(io.BytesIO())


def test_names_of_lines_that_end_alike_stand_apart(tmp_path):
    figure = analysis.plot_learning_curves(
        {f"model {number}": [curves(0.5, 0.9)] for number in range(7)}
    )
    (panel,) = figure.axes
    colours = [line.get_color() for line in panel.lines]
    assert len({*colours}) == 6  # Five, and grey.
    assert colours[5] == colours[6] == GREY
    heights = [text.get_position()[1] for text in panel.texts]
    gaps = np.diff(heights) * panel.get_window_extent().height
    assert (gaps >= 0.15 * figure.dpi).all()
    assert min(heights) >= 0
    assert max(heights) <= 1 + 1e-6

    analysis.save_figure(figure, tmp_path / "figure.svg")
    assert ">model 6</text>" in (tmp_path / "figure.svg").read_text()


def agent_curves(steps, solved):
    return {"steps": np.array(steps), "solved": np.array(solved)}


def test_agents_are_averaged_as_far_as_all_of_them_go():
    runs = [
        agent_curves([100, 200, 300], [0.0, 0.5, 1.0]),
        agent_curves([50, 150, 170, 250], [0.0, 0.2, np.nan, 0.6]),
    ]
    steps, mean, spread = mean_and_spread(runs, "solved", "steps")
    assert steps.tolist() == [100, 150, 200, 250]
    first, second = [0.0, 0.25, 0.5, 0.75], [0.1, 0.2, 0.4, 0.6]
    np.testing.assert_allclose(mean, np.mean([first, second], axis=0))
    np.testing.assert_allclose(spread, np.std([first, second], axis=0))

    figure = analysis.plot_learning_curves(
        {"relational": runs}, "solved", "steps"
    )
    (panel,) = figure.axes
    np.testing.assert_allclose(panel.lines[0].get_xdata(), steps / 1e6)
    assert panel.get_xlabel() == "million steps"


@pytest.mark.parametrize(
    "other", [agent_curves([400], [0.5]), agent_curves([200], [np.nan])]
)
def test_agents_with_nothing_in_common_are_not_averaged(other):
    runs = [agent_curves([100, 300], [0.0, 1.0]), other]
    with pytest.raises(ValueError, match="no steps in common"):
        mean_and_spread(runs, "solved", "steps")


def test_an_unknown_axis():
    with pytest.raises(ValueError, match="batches, steps, minutes"):
        analysis.plot_learning_curves({"mha": [curves(0.5)]}, x="hours")


def test_figures_say_that_matplotlib_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    runs = {"predinet": [curves(0.5)]}
    with pytest.raises(ImportError, match=r"keras_relational\[plots\]"):
        analysis.plot_learning_curves(runs)

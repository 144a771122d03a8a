import io

import numpy as np

from experiments.predinet import results


def curves(*accuracies, batches_per_epoch=5_000):
    return {
        "batches": batches_per_epoch * np.arange(1, len(accuracies) + 1),
        "stripes_accuracy": np.array(accuracies),
    }


def test_one_panel_an_architecture_one_line_a_stage():
    figure = results.plot_transfer_curves(
        {
            "predinet": [
                {1: curves(0.5, 0.6), 3: curves(0.6, 0.8)},
                {1: curves(0.5, 0.8)},  # a seed whose stage 3 is not there yet
            ],
            "relation_network": [{3: curves(0.5)}],
        }
    )

    left, right = figure.axes
    assert left.get_title() == "predinet"
    assert right.get_title() == "relation_network"
    from_scratch, frozen = left.lines
    np.testing.assert_allclose(from_scratch.get_xdata(), [5, 10])
    np.testing.assert_allclose(from_scratch.get_ydata(), [50, 70])
    np.testing.assert_allclose(frozen.get_ydata(), [60, 80])
    band = left.collections[0].get_paths()[0].vertices
    np.testing.assert_allclose(band[band[:, 0] == 10][:, 1].min(), 60)
    np.testing.assert_allclose(band[band[:, 0] == 10][:, 1].max(), 80)
    # A stage has the same colour in every panel and in the legend.
    (legend,) = figure.legends
    (line,) = right.lines
    assert line.get_color() == frozen.get_color()
    assert line.get_color() == legend.get_lines()[2].get_color()
    assert from_scratch.get_color() == legend.get_lines()[0].get_color()
    figure.savefig(io.BytesIO())

import io

import numpy as np

from experiments.predinet import results


def curves(*accuracies, batches_per_epoch=5_000):
    return {
        "batches": batches_per_epoch * np.arange(1, len(accuracies) + 1),
        "stripes_accuracy": np.array(accuracies),
    }


def test_one_panel_a_stage_one_line_an_architecture():
    figure = results.plot_transfer_curves(
        {
            "relation_network": [{3: curves(0.5)}],
            "predinet": [
                {1: curves(0.5, 0.6), 3: curves(0.6, 0.8)},
                {1: curves(0.5, 0.8)},  # a seed whose stage 3 is not there yet
            ],
        }
    )

    from_scratch, _, frozen, _ = figure.axes
    assert from_scratch.get_title() == "1: target from scratch"
    _, alone = from_scratch.lines
    np.testing.assert_allclose(alone.get_xdata(), [5, 10])
    np.testing.assert_allclose(alone.get_ydata(), [50, 70])
    band = from_scratch.collections[0].get_paths()[0].vertices
    np.testing.assert_allclose(band[band[:, 0] == 10][:, 1].min(), 60)
    np.testing.assert_allclose(band[band[:, 0] == 10][:, 1].max(), 80)
    _, predinet = frozen.lines
    np.testing.assert_allclose(predinet.get_ydata(), [60, 80])
    assert predinet.get_color() == alone.get_color()
    names = [[x.get_text() for x in panel.texts] for panel in figure.axes]
    assert names == [["predinet"], [], ["relation network", "predinet"], []]
    figure.savefig(io.BytesIO())

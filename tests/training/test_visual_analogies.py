import numpy as np

from keras_relational import training
from keras_relational.datasets import visual_analogies


def test_batches_are_problems_and_go_on_where_they_were():
    whole = training.VisualAnalogyBatches(3, "test", "random", 24, seed=1)
    rest = training.VisualAnalogyBatches(3, "test", "random", 24, 5, seed=1)
    expected = visual_analogies.generate(3, "test", "random", 24, seed=[1, 7])
    for batch in (whole[7], rest[2]):
        np.testing.assert_array_equal(batch[0], expected.images)
        np.testing.assert_array_equal(batch[1], expected.labels)
    assert (whole[8][0] != whole[7][0]).any()

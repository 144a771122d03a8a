import numpy as np

from keras_relational import training
from keras_relational.datasets import visual_analogies


def test_published_files_are_read_when_they_are_needed(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (5, 9, 160, 160), "uint8")
    paths = [
        tmp_path / f"analogy_train_lbc_{number}.npz" for number in range(5)
    ]
    whole = training.VisualAnalogyFiles(paths, 2, 160, seed=1)
    rest = training.VisualAnalogyFiles(paths, 2, 160, 3, seed=1)
    for number, path in enumerate(paths):
        np.savez(path, image=images[number], target=number % 4)
    seen = []
    for index in range(5):
        x, y = whole[index]
        for image, label in zip(x[..., 0], y, strict=True):
            (number,) = np.flatnonzero((images == image).all((1, 2, 3)))
            assert label == number % 4
            seen.append(int(number))
    assert sorted(seen[:5]) == sorted(seen[5:]) == list(range(5))
    for one, two in zip(rest[1], whole[4], strict=True):
        np.testing.assert_array_equal(one, two)


def test_batches_are_problems_and_go_on_where_they_were():
    kind = (3, "test", "random", 24)
    whole = training.VisualAnalogyBatches(*kind, seed=1, distraction=False)
    rest = training.VisualAnalogyBatches(*kind, 5, seed=1, distraction=False)
    expected = visual_analogies.generate(*kind, seed=[1, 7], distraction=False)
    for batch in (whole[7], rest[2]):
        np.testing.assert_array_equal(batch[0], expected.images)
        np.testing.assert_array_equal(batch[1], expected.labels)
    assert (whole[8][0] != whole[7][0]).any()

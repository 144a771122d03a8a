from unittest import mock

import numpy as np
import pytest

from keras_relational.datasets import visual_analogies
from keras_relational.datasets.visual_analogies import DOMAINS
from keras_relational.datasets.visual_analogies import ORDERED_DOMAINS
from keras_relational.datasets.visual_analogies import RELATIONS
from keras_relational.datasets.visual_analogies.panels import paint

SIZE, TILE = 160, 53
LAST_IN_TRAINING = {
    "line_colour": 4,
    "line_type": 5,
    "shape_colour": 4,
    "shape_type": 6,
    "shape_size": 4,
    "shape_quantity": 4,
    "shape_position": 8,
}


@pytest.fixture(scope="module", params=visual_analogies.REGIMES)
def regime(request):
    return request.param


@pytest.fixture(scope="module", params=[True, False])
def distraction(request):
    return request.param


@pytest.fixture(scope="module")
def problems(regime, distraction):
    return visual_analogies.generate(
        600, regime, seed=0, distraction=distraction
    )


def rows_of(problems):
    """Domain, relation and the sets of values of the three panels and all
    candidates, in plain Python, of each source and each target."""
    for values, label, relation, domains in zip(
        problems.values,
        problems.labels,
        problems.relations,
        problems.domains,
        strict=True,
    ):
        sets = [set(np.flatnonzero(panel).tolist()) for panel in values]
        source, target = (DOMAINS[domain] for domain in domains)
        relation = RELATIONS[relation]
        yield "source", source, relation, sets[:3], None
        yield (
            "target",
            target,
            relation,
            [*sets[3:5], sets[5 + label]],
            sets[5:],
        )


def results_in_python(domain, a, b):
    """What each relation makes of two panels."""
    if domain == "shape_quantity":
        (a,), (b,) = a, b
        return {
            "and": {min(a, b)},
            "or": {max(a, b)},
            "xor": {abs(a - b)},
            "progression": {2 * b - a},
        }
    step = (sum(b) - sum(a)) // len(a)
    return {
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "progression": {value + step for value in b},
    }


def test_relations_hold_and_candidates_are_those_of_all_relations(problems):
    for row, domain, relation, (a, b, third), candidates in rows_of(problems):
        results = results_in_python(domain, a, b)
        assert third == results[relation], (row, domain, relation)
        if candidates:
            if domain == "shape_quantity":  # It has no xor, but another foil.
                del results["xor"]
            distinct = set(map(frozenset, candidates))
            assert len(distinct) == 4
            assert distinct >= set(map(frozenset, results.values()))


def test_source_and_target_differ_and_everything_occurs(problems, regime):
    source, target = problems.domains.T
    assert (source != target).all()
    assert set(source) == set(range(7))
    names = {DOMAINS[number] for number in target}
    assert names == set(ORDERED_DOMAINS if regime == "test" else DOMAINS)
    for counts, low in (
        (np.bincount(problems.labels, minlength=4), 110),
        (np.bincount(problems.relations, minlength=4), 70),
    ):
        assert counts.min() > low
    quantity = DOMAINS.index("shape_quantity")
    with_quantities = (problems.domains == quantity).any(axis=1)
    assert (problems.relations[with_quantities] != RELATIONS.index("xor")).all()


def test_values_are_familiar_but_for_the_targets_of_tests(problems, regime):
    for row, domain, _, panels, _ in rows_of(problems):
        assert_familiar(panels, domain, row == "source" or regime == "train")


def assert_familiar(panels, domain, is_familiar):
    last = LAST_IN_TRAINING[domain]
    for values in panels:
        assert max(values) <= last if is_familiar else min(values) > last


def test_random_candidates_of_few_quantities_differ():
    """Of four in training; seldom are so few of them drawn."""
    problems = visual_analogies.generate(
        5_000, "train", "random", image_size=24, seed=1
    )
    quantities = problems.domains[:, 1] == DOMAINS.index("shape_quantity")
    candidates = problems.values[quantities, 5:].argmax(axis=-1)
    assert len(candidates) > 300
    assert (np.sort(candidates, axis=1) == [1, 2, 3, 4]).all()


def test_panels_are_painted_some_at_a_time(monkeypatch):
    """`TestImages` sees that each is where it belongs."""
    painted = mock.Mock(wraps=paint)
    monkeypatch.setattr(
        "keras_relational.datasets.visual_analogies.panels.paint", painted
    )
    visual_analogies.generate(150, image_size=24, seed=0)
    parts = [objects for (objects, _), _ in painted.call_args_list]
    assert [len(objects.lines) for objects in parts] == [1_000, 350]


def test_random_candidates_differ(regime):
    problems = visual_analogies.generate(
        500, regime, "random", image_size=24, seed=0
    )
    for row, domain, relation, (a, b, c), candidates in rows_of(problems):
        assert c == results_in_python(domain, a, b)[relation]
        if row == "target":
            assert len({frozenset(values) for values in candidates}) == 4
            assert {*map(len, candidates)} <= {1, 2, 3}
            assert_familiar(candidates, domain, regime == "train")


def panels_in(problems, domain):
    """Images and sets of values of the panels that vary in that domain."""
    of_panels = np.repeat(problems.domains, (3, 6), axis=1)
    mine = of_panels == DOMAINS.index(domain)
    values = [
        set(np.flatnonzero(panel).tolist()) for panel in problems.values[mine]
    ]
    return problems.images[mine][..., 0], values


def tiles(images):
    """`(n, 160, 160)` to `(n, 9, 53, 53)`."""
    cut = images[:, :159, :159].reshape(-1, 3, TILE, 3, TILE)
    return np.moveaxis(cut, 3, 2).reshape(-1, 9, TILE, TILE)


def diamond_and_circle(columns):
    """Rows of their upper halves in these columns."""
    x = np.abs((columns + 0.5) / SIZE * 2 - 1)
    heights = np.stack([0.9 - x, np.sqrt(np.maximum(0.81 - x**2, 0))])
    return np.floor((1 - heights) * SIZE / 2).astype(int)


def types_of_lines(image):
    """A line that is not there is not covered by others all along."""
    line = np.arange(SIZE)
    near, far = diamond_and_circle(line[8:-8])
    lines = (
        image[line, line],
        image[line, line[::-1]],
        image[SIZE // 2],
        image[:, SIZE // 2],
        image[near, line[8:-8]],
        image[far, line[8:-8]],
    )
    return {i for i, pixels in enumerate(lines) if (pixels < 253).all()}


def has_shape(images):
    """Only outlines are black."""
    return (tiles(images) < 10).any((2, 3))


def kind_of_shape(tile):
    """By how the distance of its border from the middle goes up and down."""
    y, x = np.nonzero(tile < 10)
    x, y = x - 79.5, y - 79.5
    radius = np.zeros(72)
    place = np.floor((np.arctan2(y, x) / np.pi + 1) * 36).astype(int) % 72
    np.maximum.at(radius, place, np.hypot(x, y))
    waves = np.abs(np.fft.rfft(radius))[3:9] / radius.sum()
    corners = 3 + waves.argmax()
    if waves.max() < 0.006:
        return 5
    if corners == 5:
        return 6 if waves.max() > 0.08 else 2
    return {3: 0, 4: 1, 6: 3, 8: 4}[int(corners)]


def shade(grey):
    return int(np.rint((1 - grey / 255 - 0.05) / 0.09))


def shades_of_shapes(images):
    pairs = zip(tiles(images)[:, :, 26, 26], has_shape(images), strict=True)
    return [set(map(shade, middles[there])) for middles, there in pairs]


# The values of each panel.
SEEN_IN_PANELS = {
    "shape_quantity": lambda images: [{n} for n in has_shape(images).sum(1)],
    "shape_position": lambda images: [
        set(np.flatnonzero(places)) for places in has_shape(images)
    ],
    "shape_colour": shades_of_shapes,
    "line_type": lambda images: list(map(types_of_lines, images)),
}


class TestImages:
    """The values are to be seen in the images."""

    @pytest.mark.parametrize("domain", SEEN_IN_PANELS)
    def test_values(self, problems, domain):
        images, expected = panels_in(problems, domain)
        assert SEEN_IN_PANELS[domain](images) == expected

    def test_types_of_shapes(self, regime):
        # Large, for corners to be counted.
        problems = visual_analogies.generate(40, regime, image_size=480, seed=1)
        images, values = panels_in(problems, "shape_type")
        num_seen = 0
        for image, expected in zip(images, values, strict=True):
            tiles = image.reshape(3, 160, 3, 160).swapaxes(1, 2)
            tiles = tiles.reshape(9, 160, 160)
            kinds = {kind_of_shape(tile) for tile in tiles if (tile < 10).any()}
            assert kinds == expected
            num_seen += 1
        assert num_seen > 10

    def test_sizes(self, problems, regime):
        images, values = panels_in(problems, "shape_size")
        heights = (tiles(images) < 10).any(3).sum(2)
        for height, there, expected in zip(
            heights, has_shape(images), values, strict=True
        ):
            # A circle is as high as it is large, a square not quite.
            size = TILE * np.linspace(0.4, 0.97, 10)[sorted(expected)]
            assert height[there].max() <= size.max() + 2
            assert height[there].min() >= 0.7 * size.min() - 2

    def test_shades_of_lines(self, problems):
        images, values = panels_in(problems, "line_colour")
        num_seen = 0
        for image, expected in zip(images, values, strict=True):
            if has_shape(image[None]).any():
                continue
            num_seen += 1
            # Of six points of each type of line, most lie on no other one.
            line = np.array([10, 30, 50, 110, 130, 150])
            middle, near, far = SIZE // 2, *diamond_and_circle(line)
            points = [
                *(image[line, line], image[line, line[::-1]]),
                *(image[middle, line], image[line, middle]),
                *(image[near, line], image[far, line]),
            ]
            greys = [np.median(on_line.astype(float)) for on_line in points]
            assert {shade(grey) for grey in greys if grey < 250} == expected
        assert num_seen > 20

    @pytest.mark.parametrize("distraction", [True], indirect=True)
    def test_panels_of_one_row_vary_in_all_else(self, problems):
        images, _ = panels_in(problems, "line_type")
        assert 0.2 < has_shape(images).any(1).mean() < 0.9

    @pytest.mark.parametrize("distraction", [False], indirect=True)
    def test_without_distraction_they_vary_in_nothing_else(self, problems):
        seen = set()
        for images, domains in zip(
            problems.images[..., 0], problems.domains, strict=True
        ):
            for panels, domain in zip(
                np.split(images, [3]), domains, strict=True
            ):
                name = DOMAINS[domain]
                seen.add(name)
                if name.startswith("line"):
                    assert not has_shape(panels).any()
                if name == "line_colour":
                    first, *others = map(types_of_lines, panels)
                    assert len(first) == 3
                    assert all(other == first for other in others)
                if not name.startswith("shape"):
                    continue
                shapes = has_shape(panels)
                assert (tiles(panels)[~shapes] == 255).all()
                if name == "shape_position":
                    for place in range(9):
                        same = tiles(panels)[shapes[:, place], place]
                        assert (same == same[:1]).all()
                elif name == "shape_quantity":
                    order = np.argsort(shapes.sum(1), kind="stable")
                    ordered = panels[order].astype(int)
                    assert (np.diff(ordered, axis=0) <= 0).all()
                else:
                    assert (shapes.sum(1) == 3).all()
                    assert (shapes == shapes[0]).all()
        assert seen >= set(ORDERED_DOMAINS) | {"shape_position"}


class TestPublishedFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        for number in range(3):
            np.savez(
                tmp_path / f"analogy_{number}.npz",
                image=self.image(number).ravel(),
                target=np.array(number),
                relation_structure_encoded=np.zeros(12),
                relation_structure=np.array([("xor", "size")], object),
            )
        return tmp_path

    def image(self, number):
        rng = np.random.default_rng(number)
        return rng.integers(0, 256, (9, 160, 160)).astype("float64")

    def test_a_folder_or_a_single_file_is_read(self, folder):
        images, labels = visual_analogies.load_npz(folder)
        assert images.shape == (3, 9, 160, 160, 1)
        assert images.dtype == labels.dtype == np.uint8
        np.testing.assert_array_equal(images[1, ..., 0], self.image(1))
        np.testing.assert_array_equal(labels, [0, 1, 2])
        images, labels = visual_analogies.load_npz(folder / "analogy_2.npz")
        np.testing.assert_array_equal(images[0, ..., 0], self.image(2))
        np.testing.assert_array_equal(labels, [2])

    def test_read_at_half_the_size(self, folder):
        paths = [folder / "analogy_2.npz", folder / "analogy_0.npz"]
        images, labels = visual_analogies.load_npz(paths, image_size=80)
        np.testing.assert_array_equal(
            images[0, ..., 0], self.image(2)[:, ::2, ::2]
        )
        np.testing.assert_array_equal(labels, [2, 0])

    @pytest.mark.parametrize(
        ("arrays", "words"),
        [
            ({"target": 1}, "lacks the array 'image'"),
            ({"image": np.zeros(230400)}, "lacks the array 'target'"),
            ({"image": np.zeros((8, 160, 160)), "target": 1}, "230400 numbers"),
            ({"image": np.zeros((160, 160, 9)), "target": 1}, "230400 numbers"),
            ({"image": np.full(230400, 256), "target": 1}, r"0\.\.255.*256"),
            ({"image": np.zeros(230400), "target": 4}, r"0\.\.3.*4"),
            ({"image": np.full(230400, 0.5), "target": 1}, "whole.*0.5"),
            ({"image": np.zeros(1, object), "target": 1}, "intact .npz"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, arrays, words):
        path = tmp_path / "wrong.npz"
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=f"(?s)wrong.npz.*{words}"):
            visual_analogies.load_npz([path])

    def test_truncated_and_missing_files(self, folder, tmp_path):
        path = folder / "analogy_0.npz"
        path.write_bytes(path.read_bytes()[:5_000])
        with pytest.raises(ValueError, match="intact"):
            visual_analogies.load_npz([path])
        with pytest.raises(FileNotFoundError):
            visual_analogies.load_npz([tmp_path / "none.npz"])
        with pytest.raises(FileNotFoundError):
            visual_analogies.load_npz(tmp_path / "no_folder")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ValueError, match=r"There is no.*empty"):
            visual_analogies.load_npz(tmp_path / "empty")
        with pytest.raises(ValueError, match="name a file"):
            visual_analogies.load_npz([])
        with pytest.raises(ValueError, match="160, 80"):
            visual_analogies.load_npz([path], image_size=64)

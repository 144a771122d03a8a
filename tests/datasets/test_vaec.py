import h5py
import numpy as np
import pytest

from keras_relational.datasets import vaec


@pytest.fixture(scope="module")
def problems():
    return vaec.generate(region=3, seed=0)


def drawn_pixel_by_pixel(x, y, size, brightness):
    """Centre 43..84, width 3..85, green 102..255; both ends included."""
    image = np.full((128, 128, 3), 128, "uint8")
    half = (3 + 2 * size) / 2
    for row, column in np.ndindex(128, 128):
        if int(43 + x - half) <= column <= int(43 + x + half) and (
            int(43 + y - half) <= row <= int(43 + y + half)
        ):
            image[row, column] = (0, int(102 + brightness * 153 / 41), 0)
    return image


def block_means(images, size):
    block = 128 // size
    cut = images.reshape(-1, size, block, size, block, 3).astype("float64")
    return np.floor(cut.mean((2, 4)) + 0.5).astype("uint8")


def random_levels(n, seed=0):
    return np.random.default_rng(seed).integers(0, 42, (n, 4))


class TestGenerate:
    def test_a_problem_is_an_analogy_along_one_dimension(self, problems):
        assert len(problems.levels) == 19_040
        n = np.arange(19_040)
        values = problems.levels[n, :, problems.dimension].astype(int)
        a, b, c = (values[n, problems.context[:, i]] for i in range(3))
        d = values[n, problems.candidates[:, 0]]
        np.testing.assert_array_equal(b - a, d - c)
        np.testing.assert_array_equal(b - a, problems.distance)
        assert ((a != c) & (a != b)).all()
        assert set(problems.distance) == {*range(-5, 0), *range(1, 6)}
        # The images show all seven levels, and are alike in all else.
        np.testing.assert_array_equal(values, [list(range(14, 21))] * 19_040)
        for dimension in range(4):
            others = np.delete(
                problems.levels[problems.dimension == dimension],
                dimension,
                axis=2,
            )
            assert (others == others[:, :1]).all()

    def test_candidates_are_the_answer_and_then_the_foils(self, problems):
        np.testing.assert_array_equal(
            np.sort(problems.candidates), [list(range(7))] * 19_040
        )
        foils = problems.candidates[:, 1:].astype(int)
        assert (np.diff(foils) > 0).all()

    def test_every_analogy_once_in_a_tenth_of_the_settings(self, problems):
        for dimension in range(4):
            mine = problems.dimension == dimension
            others = np.delete(problems.levels[mine, 0], dimension, axis=1)
            terms = np.concatenate(
                [problems.context[mine], problems.candidates[mine, :1]], axis=1
            )
            assert len(np.unique(others, axis=0)) == 343
            _, counts = np.unique(terms, axis=0, return_counts=True)
            assert list(counts) == 140 * [34]
            both = np.concatenate([others, terms], axis=1)
            assert len(np.unique(both, axis=0)) == 34 * 140

    def test_order_is_random(self, problems):
        counts = np.bincount(problems.dimension[:1_000], minlength=4)
        assert counts.min() > 200

    @pytest.mark.parametrize("region", vaec.REGIONS)
    def test_levels_of_each_region(self, region):
        moved = vaec.generate("translation", region, seed=1).levels
        spread = vaec.generate("scale", region, seed=1).levels
        low = 7 * (region - 1)
        assert set(moved.flat) == set(range(low, low + 7))
        assert set(spread.flat) == set(range(0, 6 * region + 1, region))

    def test_load_data(self):
        (x_train, y_train), (x_test, y_test) = vaec.load_data("scale", seed=3)
        assert x_train.levels.shape == (19_040, 7, 4)
        assert x_test.levels.shape == (5 * 19_040, 7, 4)
        assert not y_train.any()
        assert len(y_test) == 5 * 19_040
        np.testing.assert_array_equal(
            x_test.context[:19_040], vaec.generate("scale", 2, [3, 2]).context
        )
        assert x_train.levels.max() == 6
        assert x_test.levels.max() == 36


class TestRender:
    def test_equals_the_pixels_one_by_one(self):
        levels = random_levels(42)
        levels[:3, :3] = [(0, 0, 41), (41, 41, 41), (0, 0, 0)]
        levels[:, 3] = range(42)
        images = vaec.render(levels)
        assert images.dtype == np.uint8
        for image, level in zip(images, levels, strict=True):
            np.testing.assert_array_equal(image, drawn_pixel_by_pixel(*level))

    @pytest.mark.parametrize("size", [64, 32, 16])
    def test_smaller_images_are_block_means(self, size):
        levels = random_levels(200)
        np.testing.assert_array_equal(
            vaec.render(levels, size), block_means(vaec.render(levels), size)
        )

    @pytest.mark.parametrize("size", [128, 64, 32])
    @pytest.mark.parametrize("dimension", range(4))
    def test_all_levels_of_a_dimension_stay_distinct(self, size, dimension):
        # The smallest square wherever it may lie in a block, and others.
        block = range(128 // size)
        levels = [(x, y, 0, 0) for x in block for y in block]
        levels = np.concatenate([levels, random_levels(30, seed=dimension)])
        levels = np.repeat(levels[:, None], 42, axis=1)
        levels[:, :, dimension] = np.arange(42)
        num_distinct = [
            len({image.tobytes() for image in images})
            for images in vaec.render(levels, size)
        ]
        alike = 42 - np.array(num_distinct)
        if size == 32 and dimension == 3:
            # A square of 4 × 4 pixels that lies in four blocks, a quarter of
            # each, leaves room for fewer shades: three pairs are alike.
            (place,) = np.flatnonzero(alike)
            assert list(levels[place, 0, :3]) == [1, 1, 0]
            assert alike[place] == 3
        else:
            assert not alike.any()

    def test_any_leading_axes(self):
        levels = random_levels(6)
        np.testing.assert_array_equal(
            vaec.render(levels.reshape(2, 3, 4), 32),
            vaec.render(levels, 32).reshape(2, 3, 32, 32, 3),
        )
        assert vaec.render(np.zeros((0, 4), int)).shape == (0, 128, 128, 3)

    @pytest.mark.parametrize(
        ("levels", "size", "words"),
        [
            ([0, 0, 0, 42], 128, "0 to 41.*42"),
            ([0, 0, 0, -1], 128, "0 to 41.*-1"),
            ([0, 0, 0], 128, r"four an image.*\(3,\)"),
            ([0.5, 0, 0, 0], 128, "integers.*float"),
            ([0, 0, 0, 0], 100, "image_size=100"),
            ([0, 0, 0, 0], 0, "image_size=0"),
        ],
    )
    def test_bad_input_is_refused(self, levels, size, words):
        with pytest.raises(ValueError, match=words):
            vaec.render(levels, size)


def write_file(path, problems, levels_told):
    """As the authors' files are."""
    with h5py.File(path, "w") as file:
        for number, problem in enumerate(zip(*problems, strict=True)):
            levels, context, candidates, dimension, distance = problem
            group = file.create_group(str(number))
            group["imgs"] = vaec.render(levels)
            group["latent_class"] = levels_told[number].astype("int64")
            group["ABCD"] = np.append(context, candidates[0])
            group["not_D"] = candidates[1:]
            group["analogy_dim"] = dimension
            group["dist"] = abs(distance)


class TestPublishedFiles:
    @pytest.fixture
    def path(self, problems, tmp_path):
        path = tmp_path / "analogy_test2.hy"
        problems = [array[:12] for array in problems]
        write_file(path, problems, problems[0] - 14)
        return path

    @pytest.mark.parametrize("regime", vaec.REGIMES)
    @pytest.mark.parametrize("region", [1, 2, 6])
    def test_the_same_problems_in_the_same_form(self, regime, region, tmp_path):
        mine = vaec.generate(regime, region, seed=0)
        mine = [array[:12] for array in mine]
        within = vaec.generate("scale", 1, seed=0).levels[:12]
        for levels_told in (within, mine[0]):
            path = tmp_path / "problems.hy"
            write_file(path, mine, levels_told)
            read = vaec.load_hdf5(path)
            for own, theirs in zip(mine, read, strict=True):
                np.testing.assert_array_equal(theirs, own)
                assert theirs.dtype == own.dtype
            with h5py.File(path) as file:
                np.testing.assert_array_equal(
                    vaec.render(read.levels[10]), file["10/imgs"]
                )

    @pytest.mark.parametrize("regime", vaec.REGIMES)
    def test_six_files_tell_their_regime(self, regime, monkeypatch):
        monkeypatch.setattr(
            vaec, "load_hdf5", lambda path: vaec.generate(regime, path, seed=0)
        )
        farthest = vaec.generate(regime, 6, seed=0)
        found, regions = vaec.load_regions(vaec.REGIONS)
        assert found == regime
        assert len(regions) == 6
        np.testing.assert_array_equal(regions[5].levels, farthest.levels)

    @pytest.mark.parametrize(
        ("name", "change", "words"),
        [
            ("0/imgs", lambda x: x[:, ::-1], "not those of its levels"),
            ("4/not_D", lambda x: [x[1], *x[1:]], "all seven"),
            ("7/ABCD", lambda x: x[[1, 0, 2, 3]], "problem 7 .* an analogy"),
            ("5/analogy_dim", lambda x: (x + 1) % 4, "5 .*analogy_dim=[0-3]"),
            ("3/analogy_dim", lambda _: "size", "'analogy_dim'.*3.*numbers"),
            ("2/latent_class", lambda x: x + 42, r"class.*0\.\.41.*4[2-8]"),
            ("2/latent_class", lambda x: x[1:], r"2.*\(7, 4\).*\(6, 4\)"),
            # As many numbers, but not in their order.
            ("2/latent_class", lambda x: x.T, r"2.*\(7, 4\).*\(4, 7\)"),
            ("2/latent_class", lambda x: x + 0.5, "problem 2.*whole numbers"),
            *(
                (f"3/{name}", None, name)
                for name in ("imgs", "ABCD", "analogy_dim", "dist")
            ),
        ],
    )
    def test_what_is_wrong_is_named(self, path, name, change, words):
        with h5py.File(path, "a") as file:
            before = file[name][()]
            del file[name]
            if change:
                file[name] = change(before)
        with pytest.raises(ValueError, match=f"(?s)analogy_test2.*{words}"):
            vaec.load_hdf5(path)

    def test_numbers_may_be_floats(self, path):
        expected = vaec.load_hdf5(path)
        with h5py.File(path, "a") as file:
            for name in ("latent_class", "ABCD", "analogy_dim"):
                values = file[f"3/{name}"][()]
                del file[f"3/{name}"]
                file[f"3/{name}"] = values.astype("float64")
        for own, theirs in zip(expected, vaec.load_hdf5(path), strict=True):
            np.testing.assert_array_equal(theirs, own)

    def test_what_is_no_file_of_problems(self, path, tmp_path):
        content = path.read_bytes()
        broken = tmp_path / "broken.hy"
        for size in (0, 10, len(content) // 2):
            broken.write_bytes(content[:size])
            with pytest.raises(ValueError, match="intact HDF5"):
                vaec.load_hdf5(broken)
        with h5py.File(broken, "w"):
            pass
        with pytest.raises(ValueError, match="no problem"):
            vaec.load_hdf5(broken)
        with pytest.raises(FileNotFoundError):
            vaec.load_hdf5(tmp_path / "none.hy")

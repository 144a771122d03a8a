"""HDF5 files as published, and what harms who reads them."""

import numpy as np

from fuzz import draws


def make_vaec(folder):
    import h5py

    from keras_relational.datasets import vaec

    problems = vaec.generate(seed=0)
    with h5py.File(folder / "analogies.hy", "w") as file:
        for number in range(2):
            group = file.create_group(str(number))
            levels = problems.levels[number].astype("int64")
            candidates = problems.candidates[number].astype("int64")
            a_b_c_d = [*problems.context[number], candidates[0]]
            group["imgs"] = vaec.render(levels)
            group["latent_class"] = levels
            group["ABCD"] = np.array(a_b_c_d, "int64")
            group["not_D"] = candidates[1:]
            group["analogy_dim"] = np.int64(problems.dimension[number])
            group["dist"] = np.int64(problems.distance[number])


def read_vaec(folder):
    from keras_relational.datasets import vaec

    return vaec.load_hdf5(folder / "analogies.hy")


def hdf5_bomb(rng, path):
    """Arrays in chunks, which may be of any size, and links elsewhere."""
    import h5py

    with h5py.File(path, "r+") as file:
        group = file[str(int(rng.integers(2)))]
        name = draws.choice(rng, list(group))
        shape = group[name].shape
        del group[name]
        how = rng.integers(5)
        if how == 0:
            group.create_dataset(
                name, (2**20, 2**20), "uint8", chunks=(2**10, 2**10)
            )
        elif how == 1:
            group[name] = h5py.ExternalLink("/dev/zero", "/x")
        elif how == 2:
            group[name] = h5py.SoftLink("/")
        elif how == 3:
            group.create_dataset(name, shape, "S100")
        else:
            group.create_group(name)

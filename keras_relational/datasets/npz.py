"""Reading published `.npz` files, of which no pickle is ever loaded."""

import tokenize
import zipfile
import zlib

import numpy as np

# A header that is no header is read as Python; an archive that seems to be
# encrypted, or of a later version, is a RuntimeError.
UNREADABLE = (
    *(OSError, ValueError, EOFError, SyntaxError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)


def read_npz(path, names, kind):
    """Reads plain arrays from an `.npz` file.

    Args:
        path: Path of the file.
        names: Names of the arrays; others are not read.
        kind: What the file should be, for errors, such as `"a visual analogy"`.

    Returns:
        Dictionary of the arrays by name.

    Raises:
        ValueError: If the file is truncated or not an `.npz`, lacks an array,
            or holds a pickle in its place.
        FileNotFoundError: If there is no such file.
    """
    try:
        # Opened here, so that it is closed however np.load ends.
        with open(path, "rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            for name in names:
                if name not in file:
                    raise ValueError(
                        f"it lacks the array {name!r}; it holds {file.files}"
                    )
            arrays = {name: file[name] for name in names}
            for name, array in arrays.items():
                if not isinstance(array, np.ndarray):
                    raise ValueError(f"{name!r} is no array")
            return arrays
    except FileNotFoundError:
        raise
    except UNREADABLE as e:
        *first, last = map(repr, names)
        raise ValueError(
            f"{path} cannot be read as {kind}: {e}. Expected an intact .npz "
            f"file with the plain arrays {', '.join(first)} and {last}."
        ) from e

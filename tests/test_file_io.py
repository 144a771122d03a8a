import errno
import os
import pathlib

import pytest

from keras_relational import file_io


def test_write_atomically_leaves_the_old_file_if_it_fails(
    tmp_path, monkeypatch
):
    path = tmp_path / "result.json"
    file_io.write_atomically(path, b"old")

    def stopped(*_):
        raise OSError("stopped")

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(OSError, match="stopped"):
        file_io.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [x.name for x in tmp_path.iterdir()] == ["result.json"]


def test_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    """And the name, too, when the function returns."""
    done = []
    monkeypatch.setattr(
        file_io, "sync_to_disk", lambda path: done.append(path.name)
    )
    replace = os.replace
    monkeypatch.setattr(
        os, "replace", lambda *paths: done.append("rename") or replace(*paths)
    )
    file_io.write_atomically(tmp_path / "a.json", b"new")
    assert done == ["a.partial.json", "rename", tmp_path.name]


@pytest.mark.skipif(
    not pathlib.Path("/dev/full").exists(), reason="needs /dev/full"
)
def test_a_full_disk_names_the_file(tmp_path):
    (tmp_path / "a.partial.json").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left.*a\.json") as raised:
        file_io.write_atomically(tmp_path / "a.json", b"new" * 10**6)
    assert raised.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())

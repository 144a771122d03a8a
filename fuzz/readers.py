"""The readers of the library, and a good file for each."""

import dataclasses

from fuzz import array_files
from fuzz import checkpoint_files
from fuzz import hdf5_files
from fuzz import image_files
from fuzz import saved_models
from fuzz import text_files


@dataclasses.dataclass(frozen=True)
class Reader:
    """What reads a kind of file.

    Attributes:
        make: Writes what it reads into a folder, the same every time.
        read: Reads it back from the folder.
        share: How many of the damaged files are its own, in relation.
        intact: Whether the format has checksums, so that what can be read is as
            it was. Without them a digit may become another one unnoticed.
        bombs: Functions of `(rng, path)` that write what is made to harm.
        files: Which files of the folder are damaged, as a pattern.
        called: What the error has to call the file: a function of its path.
        seconds: What it may take longer than the others.
    """

    make: object
    read: object
    share: float = 1.0
    intact: bool = True
    bombs: tuple = ()
    files: str = "*"
    called: object = str
    seconds: float = 0.0


READERS = {
    "files.relations_npz": Reader(
        array_files.make_relations,
        array_files.read_relations,
        1.5,
        bombs=array_files.NPZ_BOMBS,
    ),
    "files.visual_analogies_npz": Reader(
        array_files.make_visual_analogies,
        array_files.read_visual_analogies,
        bombs=array_files.NPZ_BOMBS,
    ),
    "files.png": Reader(
        image_files.make_png,
        image_files.read_png,
        1.5,
        bombs=image_files.PNG_BOMBS,
    ),
    "files.fillers_png": Reader(
        image_files.make_fillers,
        image_files.read_fillers,
        0.5,
        bombs=image_files.PNG_BOMBS,
    ),
    "files.clips_png": Reader(
        image_files.make_clips,
        image_files.read_clips,
        0.5,
        bombs=image_files.PNG_BOMBS,
        files="*.png",
    ),
    "files.clips_json": Reader(
        image_files.make_clips,
        image_files.read_clips,
        0.5,
        intact=False,
        bombs=(text_files.text_bomb,),
        files="*.json",
    ),
    "files.vaec_hdf5": Reader(
        hdf5_files.make_vaec,
        hdf5_files.read_vaec,
        1.5,
        intact=False,
        bombs=(hdf5_files.hdf5_bomb,),
    ),
    "files.json": Reader(
        text_files.make_json,
        text_files.read_json,
        0.5,
        intact=False,
        bombs=(text_files.text_bomb,),
    ),
    "files.curves_csv": Reader(
        text_files.make_curves,
        text_files.read_curves,
        intact=False,
        bombs=(text_files.text_bomb,),
    ),
    "files.training_checkpoint": Reader(
        checkpoint_files.supervised,
        checkpoint_files.supervised,
        bombs=array_files.NPZ_BOMBS,
        files="checkpoint-*.npz",
    ),
    "files.agent_checkpoint": Reader(
        checkpoint_files.agent,
        checkpoint_files.agent,
        files="*checkpoints/*",
        called=checkpoint_files.checkpoint,
    ),
    "files.saved_model": Reader(
        saved_models.make_saved_models,
        saved_models.read_saved_models,
        share=0.17,
        files="*2/*",
        called=saved_models.version,
        seconds=60,
    ),
}

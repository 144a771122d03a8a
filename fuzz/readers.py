"""The readers of the library, and a good file for each."""

import dataclasses

from fuzz import data_files
from fuzz import model_files
from keras_relational import file_io
from keras_relational import runs
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies


@dataclasses.dataclass(frozen=True)
class Reader:
    """What reads a kind of file."""

    make: object  # Writes it into a folder, the same every time.
    read: object  # Reads it back from the folder.
    share: float = 1.0  # Of the damaged files, in relation.
    # Whether the format has checksums, so that what can be read is as it was.
    intact: bool = True
    bombs: tuple = ()  # Functions of (rng, path) that write what harms.
    files: str = "*"  # Which files of the folder are damaged.
    called: object = str  # From a path to what the error has to call it.
    seconds: float = 0.0  # What it may take longer than the others.


READERS = {
    "files.relations_npz": Reader(
        data_files.make_relations,
        lambda folder: relations_game.load_npz(folder / "between.npz"),
        1.5,
        bombs=data_files.NPZ_BOMBS,
    ),
    "files.visual_analogies_npz": Reader(
        data_files.make_visual_analogies,
        visual_analogies.load_npz,
        bombs=data_files.NPZ_BOMBS,
    ),
    "files.png": Reader(
        data_files.make_png,
        data_files.read_png,
        1.5,
        bombs=data_files.PNG_BOMBS,
    ),
    "files.fillers_png": Reader(
        data_files.make_fillers,
        distribution_of_three.load_images,
        0.5,
        bombs=data_files.PNG_BOMBS,
    ),
    "files.clips_png": Reader(
        data_files.make_clips,
        data_files.read_clips,
        0.5,
        bombs=data_files.PNG_BOMBS,
        files="*.png",
    ),
    "files.clips_json": Reader(
        data_files.make_clips,
        data_files.read_clips,
        0.5,
        intact=False,
        bombs=(data_files.text_bomb,),
        files="*.json",
    ),
    "files.vaec_hdf5": Reader(
        data_files.make_vaec,
        lambda folder: vaec.load_hdf5(folder / "analogies.hy"),
        1.5,
        intact=False,
        bombs=(data_files.hdf5_bomb,),
    ),
    "files.json": Reader(
        data_files.make_json,
        lambda folder: file_io.read_json(folder / "level.json"),
        0.5,
        intact=False,
        bombs=(data_files.text_bomb,),
    ),
    "files.curves_csv": Reader(
        data_files.make_curves,
        lambda folder: runs.read_curves(folder / "curves.csv"),
        intact=False,
        bombs=(data_files.text_bomb,),
    ),
    "files.training_checkpoint": Reader(
        model_files.supervised,
        model_files.supervised,
        bombs=data_files.NPZ_BOMBS,
        files="checkpoint-*.npz",
    ),
    "files.agent_checkpoint": Reader(
        model_files.agent,
        model_files.agent,
        files="*checkpoints/*",
        called=model_files.checkpoint,
    ),
    "files.saved_model": Reader(
        model_files.make_saved_models,
        model_files.read_saved_models,
        share=0.17,
        files="*2/*",
        called=model_files.version,
        seconds=60,
    ),
}

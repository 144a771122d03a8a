"""Images, and what harms who reads them."""

import json
import struct
import zlib

import numpy as np

from fuzz import draws


def make_png(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    colours = rng.integers(256, size=(24, 20, 3), dtype="uint8")
    image = Image.fromarray(colours)
    image.save(folder / "colour.png")
    image.convert("L").save(folder / "grey.png")
    image.quantize(16).save(folder / "palette.png")
    image.convert("1").save(folder / "bits.png")
    deep = (colours[..., 0].astype("uint16") << 8) + colours[..., 1]
    Image.fromarray(deep).save(folder / "deep.png")


def read_png(folder):
    from keras_relational.datasets import png

    paths = sorted(folder.glob("*.png"))
    return [png.read_png(path, "RGB", 16) for path in paths]


def make_fillers(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(3):
        image = rng.integers(256, size=(20, 20), dtype="uint8")
        Image.fromarray(image).save(folder / f"{number}.png")


def read_fillers(folder):
    from keras_relational.datasets import distribution_of_three

    return distribution_of_three.load_images(folder)


def make_clips(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(4):
        scene = folder / "O1" / "01" / str(number + 1) / "scene"
        scene.mkdir(parents=True)
        for frame in range(2):
            image = rng.integers(256, size=(16, 16, 3), dtype="uint8")
            Image.fromarray(image).save(scene / f"scene_{frame + 1:03d}.png")
        status = {"header": {"is_possible": number % 2 > 0}, "more": [1.5] * 9}
        scene.with_name("status.json").write_text(json.dumps(status))


def read_clips(folder):
    from keras_relational.datasets import intuitive_physics

    return intuitive_physics.read_published(folder, "O1", 16)


def _png_bomb(rng, path):
    """An image of a size that it does not have, or that inflates to it."""
    side = int(draws.choice(rng, (2**31 - 1, 60_000, 8192, 4096, 0)))
    high = int(draws.choice(rng, (side, 1, 20)))
    depth, colour = draws.choice(rng, ((8, 2), (16, 6), (1, 0), (8, 3), (9, 9)))
    header = struct.pack(">IIBBBBB", side, high, depth, colour, 0, 0, 0)
    packer, pixels = zlib.compressobj(1), b""
    for _ in range(int(rng.integers(1, 300))):
        pixels += packer.compress(bytes(2**20))
    chunks = [(b"IHDR", header), (b"IDAT", pixels + packer.flush())]
    text = zlib.compress(bytes(2**26), 1)
    extra = draws.choice(rng, (b"zTXt", b"iCCP", b"acTL", b"PLTE"))
    if extra != b"PLTE" or colour == 3:
        content = b"a\0\0" + text if extra != b"PLTE" else bytes(768)
        chunks.insert(1, (extra, content))
    chunks.append((b"IEND", b""))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
            for kind, content in chunks
        )
    )


def _other_image(rng, path):
    from PIL import Image

    kind = draws.choice(rng, ("GIF", "BMP", "EPS", "TIFF", "PDF", "JPEG"))
    Image.new("RGB", (4, 4)).save(path, kind)


PNG_BOMBS = (_png_bomb, _other_image)

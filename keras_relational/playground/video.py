"""Video: how SCOFF continues the first frames.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments*.
"""

from collections.abc import Mapping
from typing import Any

import keras

from keras_relational import layers
from keras_relational.analysis.schemata import scores_part
from keras_relational.analysis.single_layer import only_layer
from keras_relational.datasets import single_ball
from keras_relational.playground.networks import Network

NUM_FRAMES = 40
MIN_GIVEN = 2
DYNAMICS = ("switching", "three_axes")


class Videos:
    """The frames that follow, and the schema of each frame.

    Args:
        model: Model of `models.video_predictor` with one `SCOFF` layer that has
            one object file.
        arguments: Options of the run that trained it: `"image_size"`,
            `"bulb_radius"` and `"dynamics"`, which must be `"switching"` or
            `"three_axes"`.

    Raises:
        ValueError: If the ball moves in another way.
    """

    page = "video"
    runs = ("single_ball",)

    def __init__(
        self, model: keras.Model, arguments: Mapping[str, Any]
    ) -> None:
        self.dynamics = arguments["dynamics"]
        if self.dynamics not in DYNAMICS:
            raise ValueError(
                "The page is for balls with the dynamics "
                f"{', '.join(DYNAMICS)}. Received: {self.dynamics}"
            )
        self.model = model
        self._sizes = arguments["image_size"], arguments["bulb_radius"]

    def describe(self) -> dict[str, Any]:
        """Numbers by which the page makes videos of its own.

        Returns:
            Dictionary of `axes`, their names; `num_schemata`; `num_frames` of a
            video; `min_given`, the smallest number of frames that the model
            needs; and `image_size` and `bulb_radius`, as `single_ball` has
            them.
        """
        num_axes, _ = single_ball.VIDEOS[self.dynamics]
        image_size, bulb_radius = self._sizes
        return {
            "axes": single_ball.OSCILLATIONS[:num_axes],
            "num_schemata": only_layer(self.model, layers.SCOFF).num_schemata,
            "num_frames": NUM_FRAMES,
            "min_given": MIN_GIVEN,
            "image_size": image_size,
            "bulb_radius": bulb_radius,
        }

    def network(self) -> Network:
        """What the page runs.

        Returns:
            `Network` from `frames`, uint8 `(batch, time, height, width, 1)`, to
            `predicted`, the frame after each of them, with pixels from 0 to 1,
            and `schemata` `(batch, time, files, schemata)`, the score of each
            schema.
        """
        model, scores = self.model, scores_part(self.model).function

        def run(inputs):
            frames = inputs["frames"]
            return {
                "predicted": model(frames),
                "schemata": scores(frames)[1],
            }

        shape = (None, *model.inputs[0].shape[1:])
        return Network(model, {"frames": keras.InputSpec("uint8", shape)}, run)

    def question(self, seed: int) -> list[str]:
        """Texts: the ball's axis at each frame, and the schema chosen there."""
        # Seeds of training have two numbers.
        frames, axes, _ = single_ball.generate_videos(
            self.dynamics, 1, NUM_FRAMES, [seed, 0, 3], *self._sizes
        )
        found = self.network().run({"frames": frames})
        schemata = found["schemata"][0, :, 0].argmax(axis=-1)
        num_axes, _ = single_ball.VIDEOS[self.dynamics]
        names = single_ball.OSCILLATIONS[:num_axes]
        letters = ", ".join(f"{name[0]} for {name}" for name in names)
        lines = {
            "axis:  ": "".join(names[axis][0] for axis in axes[0]),
            "schema:": "".join(str(schema + 1) for schema in schemata),
        }
        return [
            "A ball moves to and fro, and changes its axis in the middle of "
            f"the video: {letters}. Which schema does the model choose at each "
            "frame? Nobody told it the axes.",
            "\n".join(" ".join(line) for line in lines.items()),
        ]

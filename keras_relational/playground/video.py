"""Video: how SCOFF continues the first frames.

Goyal et al., 2020, *Factorizing Declarative and Procedural Knowledge in
Structured, Dynamical Environments*.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_relational import analysis
from keras_relational import layers
from keras_relational import models
from keras_relational.analysis.compiled_parts import CompiledPart
from keras_relational.analysis.single_layer import only_layer
from keras_relational.datasets import single_ball
from keras_relational.playground.arrays import as_pixels
from keras_relational.playground.arrays import integer

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
    experiments = ("single_ball",)

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
        roll_out = models.roll_out_model(model, NUM_FRAMES - MIN_GIVEN, True)
        self._roll_out = CompiledPart(roll_out, roll_out)
        self._sizes = arguments["image_size"], arguments["bulb_radius"]

    def describe(self) -> dict[str, Any]:
        """Numbers of frames and schemata, and the axes, for the page."""
        num_axes, _ = single_ball.VIDEOS[self.dynamics]
        return {
            "num_frames": NUM_FRAMES,
            "min_given": MIN_GIVEN,
            "axes": single_ball.OSCILLATIONS[:num_axes],
            "num_schemata": only_layer(self.model, layers.SCOFF).num_schemata,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """A video, and how the model continues its first frames.

        Args:
            request: Dictionary of `video`, a number from 0 on, and `given`, the
                number of frames that the model sees. Training draws none of the
                videos.

        Returns:
            Dictionary of `true` and `predicted`, frames of 0 to 255; `axes`,
            the axis of the next step at each true frame; and `schemata`, the
            schema that the model chooses at each frame. A predicted frame
            follows from all frames before it: the given ones, then predicted
            ones. The first frame is true in both.

        Raises:
            ValueError: If the request has another form.
        """
        # Seeds of training have two numbers.
        seed = [integer(request, "video", 0, 2**31), 0, 3]
        given = integer(request, "given", MIN_GIVEN, NUM_FRAMES - 1)
        frames, axes, _ = single_ball.generate_videos(
            self.dynamics, 1, NUM_FRAMES, seed, *self._sizes
        )
        predicted = self._roll_out.predict_on_batch(frames[:, :given])
        predicted = predicted[:, : NUM_FRAMES - 1]
        predicted = np.round(predicted.clip(0, 1) * 255).astype("uint8")
        predicted = np.concatenate([frames[:, :1], predicted], axis=1)
        seen = np.concatenate([frames[:, :given], predicted[:, given:]], axis=1)
        scores = analysis.object_files(self.model, seen).schemata
        return {
            "true": as_pixels(frames[0]),
            "predicted": as_pixels(predicted[0]),
            "axes": axes[0].tolist(),
            "schemata": scores[0, :, 0].argmax(axis=-1).tolist(),
        }

    def question(self, seed: int) -> list[str]:
        """Texts: the ball's axis at each frame, and the schema chosen there."""
        found = self.answer({"video": seed, "given": NUM_FRAMES - 1})
        axes = self.describe()["axes"]
        lines = {
            "axis:  ": "".join(axes[axis][0] for axis in found["axes"]),
            "schema:": "".join(str(schema + 1) for schema in found["schemata"]),
        }
        return [
            "A ball moves to and fro, and changes its axis in the middle of "
            f"the video: {', '.join(f'{axis[0]} for {axis}' for axis in axes)}."
            " Which schema does the model choose at each frame? Nobody told it "
            "the axes.",
            "\n".join(" ".join(line) for line in lines.items()),
        ]

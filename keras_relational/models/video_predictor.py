"""What will the next frames show? A recurrent layer between two networks."""

import math

import keras
from keras import ops

from keras_relational import layers
from keras_relational.layers.operations import update_row
from keras_relational.validation import check_positive_integers

SIZE = 64


def video_predictor(core, num_channels=1, num_stacked=1, mean_pixel=0.5):
    """Builds a model that predicts the next frame after each of a video.

    Three convolutions lead to 8 × 8 positions, at which the object files of
    `SCOFF` look directly and to which, for any other core, a dense layer of 512
    is applied; then the core; then two dense layers and three transposed
    convolutions. Object files go through `SlotPooling` first, so that they are
    exchangeable. Encoder and decoder are those of [Van Steenkiste et al.,
    2018](https://arxiv.org/abs/1802.10353), as [Goyal et al., 2020](
    https://arxiv.org/abs/2006.16225), section 4 and appendix F.1, have it:
    kernels of 4 × 4, layer normalization, ELU there and ReLU here, sigmoid at
    the end; the sizes are theirs, transposed convolutions what the later paper
    calls deconvolutional.

    What an object file sees is linear in the positions, and added up over them.
    So that it is what is where, and not what there is, each position has a
    dense layer of 64 of its own, as other cores have in theirs of 512. Neither
    paper has that. With one layer for all, to which coordinates are appended,
    nothing but a mean image is learned in hundreds of batches.

    The parts are layers named `"encoder"`, `"core"`, `"pooling"` (after SCOFF)
    and `"decoder"`.

    Args:
        core: A Keras RNN layer with `return_sequences` and `return_state`, such
            as `layers.SCOFF(100, 4, 4, value_dim=100, return_sequences=True,
            return_state=True)`.
        num_channels: 1, or 3 for colours.
        num_stacked: Number of frames that the encoder sees at each step, the
            last ones side by side as channels; where there are not that many,
            black ones.
        mean_pixel: Number between 0 and 1, what is predicted about everywhere
            before training, by the last bias. Where most of a video is black,
            its mean saves the first hundred batches, in which little else is
            learned: the loss of a single ball after 150 is then a quarter.

    Returns:
        `keras.Model` from uint8 frames `(batch, time, 64, 64, num_channels)` to
        the next ones, of the same shape and between 0 and 1. Pixels are divided
        by 255 inside.

    Raises:
        ValueError: If `core` does not return sequences and states, a number is
            not a positive integer, or `mean_pixel` not between 0 and 1.

    Example:

    >>> core = keras.layers.GRU(400, return_sequences=True, return_state=True)
    >>> video_predictor(core).output_shape
    (None, None, 64, 64, 1)
    """
    if not (core.return_sequences and core.return_state):
        raise ValueError(
            "`core` must return sequences and states. Received: "
            f"return_sequences={core.return_sequences}, "
            f"return_state={core.return_state}"
        )
    check_positive_integers(num_channels=num_channels, num_stacked=num_stacked)
    if not 0 < mean_pixel < 1:
        raise ValueError(
            "`mean_pixel` must be between 0 and 1: pixels are divided by 255. "
            f"Received: mean_pixel={mean_pixel}"
        )
    shape = (SIZE, SIZE, num_channels)
    frames = keras.Input((None, *shape), dtype="uint8", name="frames")
    spatial = isinstance(core, layers.SCOFF)
    x = keras.layers.Rescaling(1 / 255, name="rescaling")(frames)
    x = StackedFrames(num_stacked, name="stacked")(x)
    encoder = _encoder(num_stacked * num_channels, spatial)
    x = layers.TimeFolded(encoder, name="encoder")(x)
    core.name = "core"
    x, *_ = core(x)
    if spatial:
        x = layers.SlotPooling(core.num_object_files, 512, name="pooling")(x)
    decoder = _decoder(x.shape[-1], num_channels, mean_pixel)
    x = layers.TimeFolded(decoder, name="decoder")(x)
    x = keras.layers.Identity(name="predicted")(x)
    return keras.Model(frames, x, name="video_predictor")


@keras.saving.register_keras_serializable(package="keras_relational")
class StackedFrames(keras.layers.Layer):
    """Each frame of a video with those before it, as channels.

    Args:
        num_frames: Positive integer, how many; where there are not that many
            they are zero. The frame itself comes last.

    Call arguments:
        frames: Tensor `(batch, time, height, width, channels)`.

    Returns:
        Tensor `(batch, time, height, width, num_frames * channels)`.
    """

    def __init__(self, num_frames, **kwargs):
        super().__init__(**kwargs)
        self.num_frames = num_frames

    def call(self, frames):
        before = self.num_frames - 1
        padded = ops.pad(frames, [(0, 0), (before, 0), *([(0, 0)] * 3)])
        time = ops.shape(frames)[1]
        return ops.concatenate(
            [padded[:, i : i + time] for i in range(self.num_frames)], axis=-1
        )

    def compute_output_shape(self, frames_shape):
        *shape, channels = frames_shape
        return (*shape, self.num_frames * channels)

    def get_config(self):
        return {**super().get_config(), "num_frames": self.num_frames}


@keras.saving.register_keras_serializable(package="keras_relational")
class RollOut(keras.layers.Layer):
    """Goes on with a video: each frame predicted is taken for the next one.

    Args:
        predictor: As `video_predictor` builds.
        num_frames: Positive integer, number of frames to predict.

    Call arguments:
        frames: Float tensor `(batch, time, 64, 64, channels)` between 0 and 1,
            the frames to begin with.

    Returns:
        Tensor `(batch, num_frames, 64, 64, channels)`, between 0 and 1.
    """

    def __init__(self, predictor, num_frames, **kwargs):
        super().__init__(**kwargs)
        self.predictor = predictor
        self.num_frames = num_frames

    def call(self, frames):
        stacked = self.predictor.get_layer("stacked")
        before = stacked.num_frames - 1
        predicted, states = self._step(stacked(frames), None)
        frames = ops.pad(frames, [(0, 0), (before, 0), *([(0, 0)] * 3)])
        last = frames[:, ops.shape(frames)[1] - before :]
        rest = [(0, self.num_frames - 1), *([(0, 0)] * 4)]

        def go_on(step, carry):
            rolled, last, frame, *states = carry
            window = ops.concatenate([last, frame], axis=1)
            stack = ops.split(window, before + 1, axis=1)
            stack = ops.concatenate(stack, axis=-1)
            frame, states = self._step(stack, states)
            rolled = update_row(rolled, step, frame[:, 0])
            return (rolled, window[:, 1:], frame, *states)

        rolled = ops.pad(ops.swapaxes(predicted, 0, 1), rest)
        carry = (rolled, last, predicted, *states)
        rolled, *_ = ops.fori_loop(1, self.num_frames, go_on, carry)
        return ops.swapaxes(rolled, 0, 1)

    def _step(self, stack, states):
        """What comes after the last stacked frame, and the core's states."""
        parts = {layer.name: layer for layer in self.predictor.layers}
        x = parts["encoder"](stack)
        x, *states = parts["core"](x, initial_state=states)
        x = x[:, -1:]
        if "pooling" in parts:
            x = parts["pooling"](x)
        return parts["decoder"](x), states

    def compute_output_shape(self, frames_shape):
        batch, _, *shape = frames_shape
        return (batch, self.num_frames, *shape)

    def get_config(self):
        return {
            **super().get_config(),
            "predictor": keras.saving.serialize_keras_object(self.predictor),
            "num_frames": self.num_frames,
        }

    @classmethod
    def from_config(cls, config):
        predictor = keras.saving.deserialize_keras_object(
            config.pop("predictor")
        )
        return cls(predictor, **config)


def roll_out_model(predictor, num_frames):
    """Builds a model that goes on with a video, from its own predictions.

    Args:
        predictor: As `video_predictor` builds. The model shares its weights.
        num_frames: Positive integer, number of frames to predict.

    Returns:
        `keras.Model` from uint8 frames `(batch, time, 64, 64, channels)`, of
        any number of steps, to the `num_frames` next ones, between 0 and 1.

    Raises:
        ValueError: If `num_frames` is not a positive integer.
    """
    check_positive_integers(num_frames=num_frames)
    (shape,) = [tensor.shape[1:] for tensor in predictor.inputs]
    frames = keras.Input(shape, dtype="uint8", name="frames")
    x = keras.layers.Rescaling(1 / 255, name="rescaling")(frames)
    x = RollOut(predictor, num_frames, name="roll_out")(x)
    x = keras.layers.Identity(name="predicted")(x)
    return keras.Model(frames, x, name="roll_out_model")


def _encoder(num_channels, spatial):
    parts = [keras.Input((SIZE, SIZE, num_channels))]
    for filters in (16, 32, 64):
        parts += [
            keras.layers.Conv2D(filters, 4, strides=2, padding="same"),
            keras.layers.GroupNormalization(1),
            keras.layers.Activation("elu"),
        ]
    if spatial:
        parts.append(
            keras.layers.EinsumDense(
                "bhwc,hwcd->bhwd",
                output_shape=(8, 8, 64),
                bias_axes="hwd",
                # Glorot's for each position, where Keras takes all for one.
                kernel_initializer=keras.initializers.RandomNormal(
                    stddev=64**-0.5
                ),
            )
        )
    else:
        parts += [
            keras.layers.Flatten(),
            keras.layers.Dense(512),
            keras.layers.LayerNormalization(),
            keras.layers.Activation("elu"),
        ]
    return keras.Sequential(parts, name="encoder")


def _decoder(size, num_channels, mean_pixel):
    parts = [keras.Input((size,))]
    for units in (512, 4096):
        parts += [
            keras.layers.Dense(units),
            keras.layers.LayerNormalization(),
            keras.layers.Activation("relu"),
        ]
    parts.append(keras.layers.Reshape((8, 8, 64)))
    for filters in (32, 16):
        parts += [
            keras.layers.Conv2DTranspose(filters, 4, strides=2, padding="same"),
            keras.layers.GroupNormalization(1),
            keras.layers.Activation("relu"),
        ]
    parts.append(
        keras.layers.Conv2DTranspose(
            num_channels,
            4,
            strides=2,
            padding="same",
            activation="sigmoid",
            bias_initializer=keras.initializers.Constant(
                math.log(mean_pixel / (1 - mean_pixel))
            ),
        )
    )
    return keras.Sequential(parts, name="decoder")

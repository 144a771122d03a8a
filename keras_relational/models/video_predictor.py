"""Predictors of videos: a recurrent core between an encoder and a decoder."""

import math
import typing

import keras
from keras import ops

from keras_relational import layers
from keras_relational.layers._operations import update_row
from keras_relational.models.convolutions import check_channels_last
from keras_relational.models.convolutions import encoder_convolutions
from keras_relational.models.declared_roles import declare
from keras_relational.models.declared_roles import part
from keras_relational.models.declared_roles import roles
from keras_relational.validation import check_choice
from keras_relational.validation import check_positive_integers

VIDEO_NETWORKS = ("convolutional", "linear")


def video_predictor(
    core: keras.layers.Layer,
    num_channels: int = 1,
    num_stacked: int = 1,
    mean_pixel: float = 0.5,
    positions: bool = True,
    image_size: int = 64,
    networks: str = "convolutional",
) -> keras.Model:
    """Builds a model that predicts the next frame after each frame of a video.

    Three convolutions encode a frame into 8 × 8 positions. The core reads them
    step by step. Two dense layers and three transposed convolutions decode the
    next frame. If the core has object files, such as `layers.SCOFF`,
    `SlotPooling` follows it and makes the object files exchangeable.

    Encoder and decoder are those of [Van Steenkiste et al.,
    2018](https://arxiv.org/abs/1802.10353), in the version of [Goyal et al.,
    2020](https://arxiv.org/abs/2006.16225), section 4 and appendix F.1: kernels
    of 4 × 4, layer normalization, ELU in the encoder, ReLU in the decoder, and
    a sigmoid at the end. The sizes are from the earlier paper. The later
    paper's deconvolutions are transposed convolutions here.

    A core that attends to positions reads a weighted sum of their features. The
    sum must show where an object is as well as what it is. So each position has
    its own dense layer of 64 units, which neither paper has. With one dense
    layer for all positions, and coordinates, the model predicted only the mean
    image after hundreds of batches.

    The model declares the parts `"stacked"`, `"encoder"`, `"core"`, `"pooling"`
    (with object files only) and `"decoder"`. The core keeps its own name as a
    layer.

    Args:
        core: A Keras RNN layer with `return_sequences` and `return_state`, such
            as `layers.SCOFF(100, 4, 4, value_dim=100, return_sequences=True,
            return_state=True)`.
        num_channels: Number of channels of a frame: 1 for grey, 3 for colour.
        num_stacked: Number of frames that the encoder sees at each step: the
            current one and those before it, as channels. Black frames precede
            the first one.
        mean_pixel: Mean of the predicted pixels before training, a number
            between 0 and 1. It sets the last bias. For videos that are mostly
            black, pass the mean of their pixels: the loss for a single ball
            after 150 batches is then a quarter of that with the default.
        positions: Boolean. If `True`, the core attends to the 8 × 8 positions.
            `layers.SCOFF` and `layers.RIMs` can do this. If `False`, the core
            gets one vector for each frame, from a dense layer of 512 units.
            Other cores, such as `keras.layers.GRU`, need `False`.
        image_size: Positive integer, height and width of a frame in pixels. The
            convolutional networks and positions need a multiple of 8, and have
            `image_size / 8` × `image_size / 8` positions.
        networks: `"convolutional"`, the networks above, or `"linear"`. With
            `"linear"` the core gets all pixels as one vector, or 8 × 8 parts of
            the frame, each through a dense layer of its own with 64 units. The
            decoder is one dense layer with a sigmoid, applied to the mean of
            the object files. No paper has these networks. A decoder that is so
            weak leaves all of the prediction to the core, and the schemata of
            `layers.SCOFF` divide the work.

    Returns:
        `keras.Model` from uint8 frames `(batch, time, image_size, image_size,
        num_channels)` to the next frames, of the same shape, with pixels
        between 0 and 1. The model divides pixels by 255.

    Raises:
        ValueError: If `core` does not return sequences and states, if
            `positions` is `True` and the core takes only vectors, if a number
            is out of its range, or if Keras' data format is not channels last.

    Example:

    >>> core = keras.layers.GRU(400, return_sequences=True, return_state=True)
    >>> video_predictor(core, positions=False).output_shape
    (None, None, 64, 64, 1)
    """
    check_channels_last()
    if not (core.return_sequences and core.return_state):
        raise ValueError(
            "`core` must return sequences and states. Received: "
            f"return_sequences={core.return_sequences}, "
            f"return_state={core.return_state}"
        )
    check_positive_integers(
        num_channels=num_channels,
        num_stacked=num_stacked,
        image_size=image_size,
    )
    check_choice("networks", networks, VIDEO_NETWORKS)
    linear = networks == "linear"
    if image_size % 8 and (positions or not linear):
        raise ValueError(
            "Convolutional networks and positions need an `image_size` that is "
            f"a multiple of 8. Received: image_size={image_size}"
        )
    if not 0 < mean_pixel < 1:
        raise ValueError(
            "`mean_pixel` must be between 0 and 1: pixels are divided by 255. "
            f"Received: mean_pixel={mean_pixel}"
        )
    if positions and getattr(core.input_spec, "ndim", None) == 3:
        raise ValueError(
            f"{core.name} takes one vector for each step, not the positions of "
            "a frame. Pass positions=False. Received: positions=True, "
            f"core={core!r}"
        )
    shape = (image_size, image_size, num_channels)
    frames = keras.Input((None, *shape), dtype="uint8", name="frames")
    x = keras.layers.Rescaling(1 / 255, name="rescaling")(frames)
    x = StackedFrames(num_stacked, name="stacked")(x)
    stack = (image_size, image_size, num_stacked * num_channels)
    encoder = (_linear_encoder if linear else _encoder)(stack, positions)
    x = layers.TimeFolded(encoder, name="encoder")(x)
    x, *_ = core(x)
    parts = {"stacked": "stacked", "encoder": "encoder", "core": core.name}
    num_object_files = getattr(core, "num_object_files", None)
    if linear:
        files = num_object_files or 1
        decoder = _linear_decoder(x.shape[-1], files, shape, mean_pixel)
    else:
        if num_object_files is not None:
            x = layers.SlotPooling(num_object_files, 512, name="pooling")(x)
            parts["pooling"] = "pooling"
        decoder = _decoder(x.shape[-1], shape, mean_pixel)
    x = layers.TimeFolded(decoder, name="decoder")(x)
    parts["decoder"] = "decoder"
    model = keras.Model(frames, x, name="video_predictor")
    return declare(model, {"predicted": "raw"}, parts=parts)


@keras.saving.register_keras_serializable(package="keras_relational")
class StackedFrames(keras.layers.Layer):
    """Stacks each frame of a video with the frames before it, as channels.

    From `(batch, time, height, width, channels)` to `(…, num_frames *
    channels)`. The current frame comes last. Frames before the first one are
    zero.
    """

    def __init__(self, num_frames: int, **kwargs: typing.Any) -> None:
        super().__init__(**kwargs)
        self.num_frames = num_frames

    def call(self, frames: keras.KerasTensor) -> keras.KerasTensor:
        before = self.num_frames - 1
        padded = ops.pad(frames, [(0, 0), (before, 0), *([(0, 0)] * 3)])
        time = ops.shape(frames)[1]
        return ops.concatenate(
            [padded[:, i : i + time] for i in range(self.num_frames)], axis=-1
        )

    def compute_output_shape(self, frames_shape: tuple) -> tuple:
        *shape, channels = frames_shape
        return (*shape, self.num_frames * channels)

    def get_config(self) -> dict[str, typing.Any]:
        return {**super().get_config(), "num_frames": self.num_frames}


@keras.saving.register_keras_serializable(package="keras_relational")
class RollOut(keras.layers.Layer):
    """Continues a video: each predicted frame is the next input.

    The arguments, the frames in and the frames out are those of
    `roll_out_model`, but pixels are floats between 0 and 1.
    """

    def __init__(
        self,
        predictor: keras.Model,
        num_frames: int,
        all_frames: bool = False,
        **kwargs: typing.Any,
    ) -> None:
        super().__init__(**kwargs)
        self.predictor = predictor
        self.num_frames = num_frames
        self.all_frames = all_frames

    def call(
        self, frames: keras.KerasTensor, training: bool = False
    ) -> keras.KerasTensor:
        stacked = part(self.predictor, "stacked")
        before = stacked.num_frames - 1
        predicted, states = self._step(stacked(frames), None)
        frames = ops.pad(frames, [(0, 0), (before, 0), *([(0, 0)] * 3)])
        last = frames[:, ops.shape(frames)[1] - before :]

        def predict_next(last, frame, *states):
            window = ops.concatenate([last, frame], axis=1)
            stack = ops.split(window, before + 1, axis=1)
            stack = ops.concatenate(stack, axis=-1)
            frame, states = self._step(stack, states)
            return window[:, 1:], frame, *states

        def write_next(step, carry):
            rolled, *carry = carry
            carry = predict_next(*carry)
            return (update_row(rolled, step, carry[1][:, 0]), *carry)

        frame = predicted[:, -1:]
        carry = (last, frame, *states)
        if training:
            # Unrolled: XLA on TensorFlow has no gradient of `fori_loop`, and
            # layers that draw random numbers cannot do so in it on JAX.
            rolled = [frame]
            for _ in range(1, self.num_frames):
                carry = predict_next(*carry)
                rolled.append(carry[1])
            rolled = ops.concatenate(rolled, axis=1)
        else:
            rest = [(0, self.num_frames - 1), *([(0, 0)] * 4)]
            rolled = ops.pad(ops.swapaxes(frame, 0, 1), rest)
            carry = (rolled, *carry)
            rolled, *_ = ops.fori_loop(1, self.num_frames, write_next, carry)
            rolled = ops.swapaxes(rolled, 0, 1)
        if not self.all_frames:
            return rolled
        return ops.concatenate([predicted[:, :-1], rolled], axis=1)

    def _step(self, stack, states):
        """The predicted next frames, and the new states of the core."""
        x = part(self.predictor, "encoder")(stack)
        x, *states = part(self.predictor, "core")(x, initial_state=states)
        if not self.all_frames:
            x = x[:, -1:]
        if "pooling" in roles(self.predictor).parts:
            x = part(self.predictor, "pooling")(x)
        return part(self.predictor, "decoder")(x), states

    def compute_output_shape(self, frames_shape: tuple) -> tuple:
        batch, time, *shape = frames_shape
        if not self.all_frames:
            return (batch, self.num_frames, *shape)
        length = None if time is None else time - 1 + self.num_frames
        return (batch, length, *shape)

    def get_config(self) -> dict[str, typing.Any]:
        return {
            **super().get_config(),
            "predictor": keras.saving.serialize_keras_object(self.predictor),
            "num_frames": self.num_frames,
            "all_frames": self.all_frames,
        }

    @classmethod
    def from_config(cls, config: dict[str, typing.Any]) -> "RollOut":
        predictor = keras.saving.deserialize_keras_object(
            config.pop("predictor")
        )
        return cls(predictor, **config)


def roll_out_model(
    predictor: keras.Model, num_frames: int, all_frames: bool = False
) -> keras.Model:
    """Builds a model that continues a video from its own predictions.

    The model can be trained. A predictor that is trained on true frames alone
    learns nothing about its own errors, and in a roll-out they grow. With
    `all_frames` every frame of a video but the first is predicted, as in the
    training of `video_predictor`.

    Args:
        predictor: Model of `video_predictor`. The new model shares its weights.
        num_frames: Positive integer, number of frames to predict.
        all_frames: Boolean. If `True`, the model also returns its predictions
            of the given frames, from the second on.

    Returns:
        `keras.Model` from uint8 frames `(batch, time, height, width,
        channels)`, of any number of steps, to the `num_frames` next frames,
        with pixels between 0 and 1. With `all_frames` it returns `time - 1 +
        num_frames` frames.

    Raises:
        ValueError: If `num_frames` is not a positive integer.
    """
    check_positive_integers(num_frames=num_frames)
    (shape,) = [tensor.shape[1:] for tensor in predictor.inputs]
    frames = keras.Input(shape, dtype="uint8", name="frames")
    x = keras.layers.Rescaling(1 / 255, name="rescaling")(frames)
    x = RollOut(predictor, num_frames, all_frames, name="roll_out")(x)
    model = keras.Model(frames, x, name="roll_out_model")
    return declare(model, {"predicted": "raw"}, parts={"roll_out": "roll_out"})


def _encoder(shape, positions):
    parts = [keras.Input(shape)]
    for convolution, filters in zip(
        encoder_convolutions(3), (16, 32, 64), strict=True
    ):
        parts += [
            convolution(filters, 4, strides=2, padding="same"),
            keras.layers.GroupNormalization(1),
            keras.layers.Activation("elu"),
        ]
    if positions:
        parts.append(_dense_of_positions((shape[0] // 8, shape[1] // 8), 64))
    else:
        parts += [
            keras.layers.Flatten(),
            keras.layers.Dense(512),
            keras.layers.LayerNormalization(),
            keras.layers.Activation("elu"),
        ]
    return keras.Sequential(parts, name="encoder")


def _linear_encoder(shape, positions):
    if not positions:
        return keras.Sequential([keras.Input(shape), keras.layers.Flatten()])
    size, _, channels = shape
    side = size // 8
    features = side * side * channels
    return keras.Sequential(
        [
            keras.Input(shape),
            keras.layers.Reshape((8, side, 8, side * channels)),
            keras.layers.Permute((1, 3, 2, 4)),
            keras.layers.Reshape((8, 8, features)),
            _dense_of_positions((8, 8), features),
        ],
        name="encoder",
    )


def _dense_of_positions(size, num_features):
    """A dense layer of 64 units for each position, with weights of its own."""
    # The scale for one position. Keras would compute it for all together.
    return keras.layers.EinsumDense(
        "bhwc,hwcd->bhwd",
        output_shape=(*size, 64),
        bias_axes="hwd",
        kernel_initializer=keras.initializers.RandomNormal(
            stddev=num_features**-0.5
        ),
    )


def _decoder(size, shape, mean_pixel):
    height, width, num_channels = shape
    places = (height // 8, width // 8, 64)
    parts = [keras.Input((size,))]
    for units in (512, math.prod(places)):
        parts += [
            keras.layers.Dense(units),
            keras.layers.LayerNormalization(),
            keras.layers.Activation("relu"),
        ]
    parts.append(keras.layers.Reshape(places))
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
            bias_initializer=_bias_of(mean_pixel),
        )
    )
    return keras.Sequential(parts, name="decoder")


def _linear_decoder(size, num_object_files, shape, mean_pixel):
    return keras.Sequential(
        [
            keras.Input((size,)),
            keras.layers.Reshape((num_object_files, size // num_object_files)),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(
                math.prod(shape),
                activation="sigmoid",
                bias_initializer=_bias_of(mean_pixel),
            ),
            keras.layers.Reshape(shape),
        ],
        name="decoder",
    )


def _bias_of(mean_pixel):
    """The bias with which a sigmoid gives the mean pixel."""
    return keras.initializers.Constant(math.log(mean_pixel / (1 - mean_pixel)))

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="keras_relational")
class StridedConv2D(keras.layers.Conv2D):
    """A `keras.layers.Conv2D` made of matrix products, for loops under XLA.

    Its weights, arguments and outputs are those of `keras.layers.Conv2D`, and
    `kernel_size` must be a whole multiple of `strides`:

        outputs[i, j] = Σ_kl blocks[i + k, j + l] kernel[k, l]

    `blocks` is the image, cut into blocks of the size of a stride. `kernel[k,
    l]` is the part of the kernel that covers one block. In a loop that XLA
    compiles for a CPU, `keras.layers.Conv2D` takes several times as long.
    Outside of loops its gradients take up to three times as long, but its
    outputs alone are mostly faster. So with `in_inference=False` Keras' own
    convolution makes the outputs in inference, and where the layer is not
    trained. On TensorFlow with strides above 1 it does so in any case: there it
    is faster in loops, too.
    """

    def __init__(
        self, *args: object, in_inference: bool = True, **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)
        self.in_inference = in_inference
        settings = {
            "kernel_size % strides": (
                self.kernel_size[0] % self.strides[0],
                self.kernel_size[1] % self.strides[1],
            ),
            "data_format": self.data_format,
            "dilation_rate": self.dilation_rate,
            "groups": self.groups,
        }
        expected = ((0, 0), "channels_last", (1, 1), 1)
        for (name, value), right in zip(
            settings.items(), expected, strict=True
        ):
            if value != right:
                raise ValueError(
                    f"StridedConv2D needs {name} = {right!r}. Use "
                    f"keras.layers.Conv2D otherwise. Received: {name} = "
                    f"{value!r}"
                )

    def call(
        self, inputs: keras.KerasTensor, training: bool = False
    ) -> keras.KerasTensor:
        # Keras casts floats alone to the dtype of a layer.
        inputs = ops.cast(inputs, self.compute_dtype)
        products = self.in_inference
        if keras.backend.backend() == "tensorflow" and max(self.strides) > 1:
            products = False
        if products or (training and self.trainable):
            outputs = self._products(inputs, self.kernel)
        else:
            outputs = self.convolution_op(inputs, self.kernel)
        if self.use_bias:
            outputs = outputs + self.bias
        return self.activation(outputs)

    def get_config(self) -> dict:
        return {**super().get_config(), "in_inference": self.in_inference}

    def _products(
        self, inputs: keras.KerasTensor, kernel: keras.KerasTensor
    ) -> keras.KerasTensor:
        if self.padding == "same":
            inputs = self._padded(inputs)
        _, height, width, channels = ops.shape(inputs)
        (down, right), filters = self.strides, self.filters
        rows, columns = height // down, width // right
        blocks = ops.reshape(
            inputs[:, : rows * down, : columns * right],
            (-1, rows, down, columns, right * channels),
        )
        blocks = ops.reshape(
            ops.transpose(blocks, (0, 1, 3, 2, 4)),
            (-1, rows, columns, down * right * channels),
        )
        parts_down = self.kernel_size[0] // down
        parts_right = self.kernel_size[1] // right
        parts = ops.reshape(
            kernel, (parts_down, down, parts_right, right, channels, filters)
        )
        parts = ops.reshape(
            ops.transpose(parts, (1, 3, 4, 0, 2, 5)),
            (down * right * channels, parts_down * parts_right * filters),
        )
        # One product of each block and all parts of the kernel. Those that
        # belong to one output stand in neighbouring blocks.
        products = ops.split(
            ops.matmul(blocks, parts), parts_down * parts_right, axis=-1
        )
        new_rows = rows - parts_down + 1
        new_columns = columns - parts_right + 1
        places = np.ndindex(parts_down, parts_right)
        return sum(
            product[:, i : i + new_rows, j : j + new_columns]
            for product, (i, j) in zip(products, places, strict=True)
        )

    def _padded(self, inputs):
        """Pads the image with zeros, as `padding="same"` defines it."""
        padding = []
        for size, kernel, stride in zip(
            ops.shape(inputs)[1:3], self.kernel_size, self.strides, strict=True
        ):
            missing = (-(-size // stride) - 1) * stride + kernel - size
            padding.append((missing // 2, missing - missing // 2))
        return ops.pad(inputs, [(0, 0), *padding, (0, 0)])

"""The export in TensorFlow's C API: the loader of the real server.

`TF_LoadSessionFromSavedModel` calls the C++ function that TensorFlow Serving
loads models with, and `TF_SessionRun` the session that it runs them in. No
Python of ours, of Keras or of TensorFlow takes part.
"""

import contextlib
import ctypes
import os

import numpy as np
import pytest
import tensorflow as tf

UINT8, FLOAT, INT64 = 4, 1, 9
INVALID_ARGUMENT = 3
DTYPES = {UINT8: "uint8", FLOAT: "float32", INT64: "int64"}


class Buffer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("deallocator", ctypes.c_void_p),
    )


class Output(ctypes.Structure):
    _fields_ = (("operation", ctypes.c_void_p), ("index", ctypes.c_int))


@pytest.fixture(scope="module")
def library():
    folder = os.path.dirname(tf.__file__)
    library = ctypes.CDLL(os.path.join(folder, "libtensorflow_cc.so.2"))
    for name in (
        "TF_NewStatus TF_NewSessionOptions TF_NewGraph TF_NewBuffer "
        "TF_LoadSessionFromSavedModel TF_GraphOperationByName "
        "TF_AllocateTensor TF_TensorData"
    ).split():
        getattr(library, name).restype = ctypes.c_void_p
    library.TF_Message.restype = ctypes.c_char_p
    library.TF_TensorByteSize.restype = ctypes.c_size_t
    library.TF_Dim.restype = ctypes.c_int64
    return library


class Session:
    """A SavedModel, loaded by its tag."""

    def __init__(self, library, saved_model):
        self.library = library
        self.status = ctypes.c_void_p(library.TF_NewStatus())
        self.graph = ctypes.c_void_p(library.TF_NewGraph())
        options = ctypes.c_void_p(library.TF_NewSessionOptions())
        buffer = ctypes.c_void_p(library.TF_NewBuffer())
        self.session = ctypes.c_void_p(
            library.TF_LoadSessionFromSavedModel(
                options,
                None,
                str(saved_model).encode(),
                (ctypes.c_char_p * 1)(b"serve"),
                1,
                self.graph,
                buffer,
                self.status,
            )
        )
        self.check()
        content = Buffer.from_address(buffer.value)
        meta_graph = tf.compat.v1.MetaGraphDef.FromString(
            ctypes.string_at(content.data, content.length)
        )
        self.signatures = meta_graph.signature_def
        library.TF_DeleteBuffer(buffer)
        library.TF_DeleteSessionOptions(options)

    def close(self):
        self.library.TF_DeleteSession(self.session, self.status)
        self.library.TF_DeleteGraph(self.graph)
        self.library.TF_DeleteStatus(self.status)

    def check(self):
        code = self.library.TF_GetCode(self.status)
        if code != 0:
            message = self.library.TF_Message(self.status).decode()
            raise RuntimeError(f"Code {code}: {message}")

    def run(self, signature_name, inputs):
        signature = self.signatures[signature_name]
        feeds = [
            (self.output(signature.inputs[name]), self.tensor(value))
            for name, value in inputs.items()
        ]
        names = sorted(signature.outputs)
        fetches = [self.output(signature.outputs[name]) for name in names]
        results = (ctypes.c_void_p * len(names))()
        self.library.TF_SessionRun(
            self.session,
            None,
            (Output * len(feeds))(*(output for output, _ in feeds)),
            (ctypes.c_void_p * len(feeds))(*(tensor for _, tensor in feeds)),
            len(feeds),
            (Output * len(names))(*fetches),
            results,
            len(names),
            None,
            0,
            None,
            self.status,
        )
        for _, tensor in feeds:
            self.library.TF_DeleteTensor(ctypes.c_void_p(tensor))
        self.check()
        return {
            name: self.array(result)
            for name, result in zip(names, results, strict=True)
        }

    def output(self, info):
        name, index = info.name.split(":")
        operation = self.library.TF_GraphOperationByName(
            self.graph, name.encode()
        )
        assert operation, f"{name} is not in the graph"
        return Output(operation, int(index))

    def tensor(self, value):
        assert value.dtype == "uint8"
        sizes = (ctypes.c_int64 * value.ndim)(*value.shape)
        tensor = self.library.TF_AllocateTensor(
            UINT8, sizes, value.ndim, ctypes.c_size_t(value.nbytes)
        )
        data = self.library.TF_TensorData(ctypes.c_void_p(tensor))
        ctypes.memmove(data, value.tobytes(), value.nbytes)
        return tensor

    def array(self, result):
        tensor = ctypes.c_void_p(result)
        shape = [
            self.library.TF_Dim(tensor, axis)
            for axis in range(self.library.TF_NumDims(tensor))
        ]
        content = ctypes.string_at(
            self.library.TF_TensorData(tensor),
            self.library.TF_TensorByteSize(tensor),
        )
        dtype = DTYPES[self.library.TF_TensorType(tensor)]
        self.library.TF_DeleteTensor(tensor)
        return np.frombuffer(content, dtype).reshape(shape)


@pytest.fixture(scope="module")
def session(library, model_dir):
    with contextlib.closing(Session(library, model_dir / "1")) as session:
        yield session


@pytest.fixture(scope="module")
def multi_task_session(library, multi_task_dir):
    with contextlib.closing(Session(library, multi_task_dir / "3")) as session:
        yield session


of_both_signatures = pytest.mark.parametrize(
    "signature_name", ["serving_default", "propositions"]
)


@of_both_signatures
def test_answers(signature_name, session, images, expected, assert_answers):
    # Another shape is refused, though it has the right number of values.
    with pytest.raises(
        RuntimeError,
        match=f"^Code {INVALID_ARGUMENT}: .*not compatible with expected sh",
    ):
        session.run(signature_name, {"image": images.reshape(7, 18, 72, 3)})
    for size in (1, 7):
        outputs = session.run(signature_name, {"image": images[:size]})
        assert_answers(outputs, expected, signature_name, size)
    empty = session.run(signature_name, {"image": images[:0]})
    for name, output in empty.items():
        assert output.shape == (0, *outputs[name].shape[1:])


@of_both_signatures
def test_multi_task_model(
    signature_name,
    multi_task_session,
    images,
    tasks,
    multi_task_expected,
    assert_answers,
):
    """What has no answer is an invalid argument, as a client is told."""
    for wrong, explanation in (
        ([0, 1, 2, 2, 1, 0, 3], "must be 0 or more, and below 3"),
        ([0, 1, 2, 2, 1, 0, 255], "must be 0 or more, and below 3"),
        ([0], "The inputs image and task must have one batch size"),
    ):
        inputs = {"image": images, "task": np.array(wrong, "uint8")}
        with pytest.raises(
            RuntimeError, match=f"^Code {INVALID_ARGUMENT}: .*{explanation}"
        ):
            multi_task_session.run(signature_name, inputs)
    inputs["task"] = tasks
    outputs = multi_task_session.run(signature_name, inputs)
    assert_answers(outputs, multi_task_expected, signature_name, 7)

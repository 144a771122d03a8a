"""A video predictor, exported and served: frames in, the next ones out."""

import keras
import numpy as np
import pytest

from keras_relational import layers
from keras_relational import models
from keras_relational import serving


@pytest.mark.parametrize("network", ["rest", "grpc"])
def test_the_next_frames_of_a_video(network, tmp_path):
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 2, 2, return_sequences=True, return_state=True)
    predictor = models.video_predictor(core)
    model = models.roll_out_model(predictor, 4)
    rng = np.random.default_rng(0)
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path, "balls") as server:
        # An only output has no name in JSON.
        predict, address = serving.predict_rest, server.rest_url
        name = "outputs"
        if network == "grpc":
            predict, address = serving.predict_grpc, server.grpc_address
            name = "predicted"
        # One export, videos of any length.
        for time in (2, 5):
            frames = rng.integers(0, 256, (1, time, 64, 64, 1), dtype="uint8")
            answers = predict(address, {"frames": frames}, "balls")
            assert set(answers) == {name}
            np.testing.assert_allclose(
                answers[name],
                model.predict(frames, verbose=0),
                atol=1e-5,
            )

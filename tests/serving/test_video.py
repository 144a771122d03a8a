"""A video predictor, exported and served: frames in, the next ones out."""

import keras
import numpy as np

from keras_relational import layers
from keras_relational import models
from keras_relational import serving


def test_the_next_frames_of_a_video(tmp_path):
    keras.utils.set_random_seed(0)
    core = layers.SCOFF(8, 2, 2, return_sequences=True, return_state=True)
    model = models.roll_out_model(models.video_predictor(core), 4)
    rng = np.random.default_rng(0)
    serving.export_model(model, tmp_path)
    with serving.serve(tmp_path, "balls") as server:
        # One export, videos of any length. An only output has no name in JSON.
        for predict, address, name, time in (
            (serving.predict_rest, server.rest_url, "outputs", 2),
            (serving.predict_grpc, server.grpc_address, "predicted", 5),
        ):
            frames = rng.integers(0, 256, (1, time, 64, 64, 1), dtype="uint8")
            answers = predict(address, {"frames": frames}, "balls")
            assert set(answers) == {name}
            np.testing.assert_allclose(
                answers[name], model.predict(frames, verbose=0), atol=1e-5
            )

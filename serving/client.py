"""Asks TensorFlow Serving, or its stand-in, about Relations Game images."""

import argparse

import numpy as np

from keras_relational import serving
from keras_relational.datasets import relations_game


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rest-url", default="http://127.0.0.1:8501")
    parser.add_argument("--grpc-address", default="127.0.0.1:8500")
    parser.add_argument("--model-name", default="relations")
    parser.add_argument(
        "--task",
        choices=relations_game.TASKS,
        default="between",
        help="task that the model was trained on",
    )
    arguments = parser.parse_args()

    url, name = arguments.rest_url, arguments.model_name
    print(f"Versions of {name}: {serving.model_status(url, name)}")
    images, labels, _ = relations_game.generate(
        arguments.task, 8, "hexominoes", seed=0
    )
    answers = serving.predict_rest(url, {"image": images}, name)
    for number, label in enumerate(labels):
        answer = answers["label"][number]
        probability = answers["probabilities"][number, answer]
        print(
            f"Image {number}: {label} is right, the model says {answer} with "
            f"probability {probability:.3f}"
        )
    reasons = serving.predict_grpc(
        arguments.grpc_address,
        {"image": images},
        name,
        signature_name="propositions",
    )
    same = np.array_equal(reasons["label"], answers["label"])
    print(f"gRPC and REST {'agree' if same else 'DISAGREE'}")
    for head in range(min(3, reasons["distances"].shape[1])):
        (x1, y1), (x2, y2) = (
            reasons[key][0, head] for key in ("positions_1", "positions_2")
        )
        print(
            f"Image 0, head {head}: the entities at ({x1:.2f}, {y1:.2f}) and "
            f"({x2:.2f}, {y2:.2f}) lie "
            f"{np.round(reasons['distances'][0, head], 2)} apart"
        )


if __name__ == "__main__":
    main()

"""What a classifier answers, in words."""

from collections.abc import Sequence

import numpy as np
from keras import ops


def answer_as_text(
    answers: Sequence[str], logits: np.ndarray, right: int
) -> str:
    """The likeliest of some answers, its probability, and the right one."""
    chances = ops.convert_to_numpy(ops.softmax(logits))
    return (
        f"Its answer: {answers[chances.argmax()]} (probability "
        f"{chances.max():.3f}). Right: {answers[right]}."
    )

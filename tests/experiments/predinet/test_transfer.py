import keras
import numpy as np
import pytest

from experiments.predinet import transfer
from keras_relational import models
from keras_relational import runs
from keras_relational import training
from keras_relational.datasets import relations_game

ARGUMENTS = {
    "num_batches": 40,
    "batches_per_epoch": 20,
    "steps_per_execution": 10,
    "verbose": 0,
}


def data(tasks, size=40):
    images, labels, task_ids = relations_game.generate(tasks, size, seed=0)
    return (images, task_ids), labels


CURRICULUM = data(["between"])
TARGET = data(["column_ABA", "column_AAB"])


@pytest.mark.slow
@pytest.mark.parametrize("central", ["predinet", "mlp2"])
def test_stages_train_what_they_should(central, monkeypatch, tmp_path):
    """Watches each stage's network before and after training."""
    built, before = [], []

    def build():
        model = models.relations_classifier(
            central, num_heads=2, num_relations=3, num_tasks=5
        )
        built.append(model)
        return model

    original = training.train_classifier

    def train(model, *args, **kwargs):
        before.append(weights(built[-1]))
        return original(model, *args, **kwargs)

    monkeypatch.setattr(training, "train_classifier", train)
    trained, curves = transfer.four_stage_transfer(
        build,
        CURRICULUM,
        TARGET,
        {"it": CURRICULUM},
        {"it": TARGET},
        **ARGUMENTS,
    )
    assert list(curves) == [1, 2, 3, 4]
    for stage in curves.values():
        assert stage["it_accuracy"].shape == (2,)
    # The copies of the last two come after the networks that were trained.
    assert [built.index(trained[x]) for x in range(1, 5)] == [0, 1, 3, 5]
    found = (weights(trained[x]) for x in range(1, 5))
    scratch, pretrained, reuse, encoder_only = found
    parts = ("encoder", "central", "hidden", "logits")
    for part in parts:
        # Every network starts from weights of its own, and 1 and 2 train all.
        assert changed(before[0], before[1], part)
        assert changed(before[0], scratch, part)
        assert changed(before[1], pretrained, part)
    for part, frozen in zip(parts, (True, True, False, False), strict=True):
        assert changed(before[2], reuse, part) != frozen
        assert changed(pretrained, reuse, part) != frozen
        assert changed(pretrained, {**before[2]}, part) != frozen
    for part, frozen in zip(parts, (True, False, False, False), strict=True):
        assert changed(before[3], encoder_only, part) != frozen
        assert changed(pretrained, before[3], part) != frozen
    # The curve of stage 3 is that of the whole network.
    logits = keras.ops.convert_to_numpy(trained[3](list(TARGET[0])))
    accuracy = np.mean(logits.argmax(-1) == TARGET[1])
    assert curves[3]["it_accuracy"][-1] == accuracy
    for stage, network in trained.items():
        network.save(tmp_path / f"{stage}.keras")


def weights(model):
    return {layer.name: layer.get_weights() for layer in model.layers}


def changed(before, after, part):
    return any(
        (a != b).any() for a, b in zip(before[part], after[part], strict=True)
    )


def test_stage_3_alone_pretrains_and_continues(tmp_path):
    def train(stages, **arguments):
        with runs.Run(tmp_path, "test", {}) as run:
            _, curves = transfer.four_stage_transfer(
                lambda: models.relations_classifier(num_heads=2, num_tasks=5),
                CURRICULUM,
                TARGET,
                {},
                {"it": TARGET},
                stages=stages,
                run=run,
                **{**ARGUMENTS, **arguments},
            )
        return curves

    first = train([3])
    assert list(first) == [3]
    assert np.isfinite(first[3]["loss"]).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "run.lock",
        "stage_2",
        "stage_3",
    ]
    # Finished stages are read, not run again.
    again = train([2, 3])
    assert list(again) == [2, 3]
    for name in first[3]:
        np.testing.assert_array_equal(first[3][name], again[3][name])
    # Stage 3 would go on with what another network makes of the images.
    with pytest.raises(ValueError, match=r"after 40 batches of stage 2.*=60"):
        train([3], num_batches=60)


@pytest.mark.parametrize("last_frozen", ["central", "coordinates"])
def test_behind_frozen_layers_the_policy_stays(last_frozen):
    keras.config.set_dtype_policy("mixed_float16")
    model = models.relations_classifier(num_tasks=2)
    keras.config.set_dtype_policy("float32")
    behind = transfer._behind(model, last_frozen)
    assert behind.dtype_policy.name == "mixed_float16"

"""The analogy scorer, compared with one that encodes images per candidate."""

import time

import keras
from keras import ops

from benchmarks import measuring
from benchmarks import processes
from experiments.context_normalization.vaec import AnalogyBatches
from fuzz.memory import memory_of
from keras_relational import models
from keras_relational.datasets import vaec


def main():
    training_step()
    problems, mebibytes = processes.in_a_process(_vaec_epoch)
    print(
        f"VAEC, an epoch drawn at 128 pixels: {problems:,.0f} problems a second"
        f" in {mebibytes:.0f} MiB"
    )


def training_step():
    """One Adam step on 32 VAEC problems, with the drawing of their images."""
    model = models.analogy_scorer()
    reference = plain_analogy_scorer(model)
    batches = AnalogyBatches(vaec.generate(seed=0))
    inputs, _ = batches[0]
    measuring.check_equal(model(inputs), reference(inputs))
    for compiler, jit_compile in measuring.compilers().items():
        epochs = []
        for scorer in (reference, model):
            scorer.compile(
                keras.optimizers.Adam(1e-9),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                jit_compile=jit_compile,
            )
            epochs.append(
                measuring.epoch_of(
                    scorer, batches, steps_per_epoch=8, shuffle=False
                )
            )
        title = f"VAEC, each candidate's images encoded, {compiler}"
        measuring.report(title, epochs, 3 * 32 * analogy_flops(), steps=8)


def _vaec_epoch():
    """Problems per second, and the memory in MiB that an epoch needs."""
    before = memory_of("self", "VmHWM")
    batches = AnalogyBatches(vaec.generate(seed=0))
    batches[0]
    num_batches = 19_040 // 32
    started = time.perf_counter()
    for number in range(num_batches):
        batches[number]
    seconds = time.perf_counter() - started
    return 32 * num_batches / seconds, (
        memory_of("self", "VmHWM") - before
    ) / 2**20


def analogy_flops(num_images=7, num_terms=4, units=256):
    sizes = (64, 32, 16, 8)
    convolutions = sum(
        size**2 * 16 * channels * 32
        for size, channels in zip(sizes, (3, 32, 32, 32), strict=True)
    )
    dense = 2048 * units + 2 * units**2
    lstm = num_images * num_terms * 8 * units**2
    return 2 * (num_images * (convolutions + dense) + lstm)


def plain_analogy_scorer(model):
    """The same layers, applied to one candidate after the other."""
    encoder = models.part(model, "encoder").layer
    normalization, recurrent, score = (
        models.part(model, role)
        for role in ("normalization", "recurrent", "score")
    )
    inputs = {
        name: keras.Input(x.shape[1:], dtype=x.dtype, name=name)
        for name, x in model.input.items()
    }

    def encoded(number):
        number = ops.reshape(number, (-1, 1, 1, 1, 1))
        image = ops.take_along_axis(inputs["images"], number, axis=1)
        return encoder(image[:, 0])

    scores = []
    for candidate in range(inputs["candidates"].shape[1]):
        terms = [inputs["context"][:, i] for i in range(3)]
        terms.append(inputs["candidates"][:, candidate])
        z = normalization(ops.stack(list(map(encoded, terms)), axis=1))
        scores.append(score(recurrent.layer(z)))
    return keras.Model(inputs, ops.concatenate(scores, axis=-1))

"""Speed, as ratios to a plain implementation measured in the same run.

`make bench` runs it on an otherwise idle machine. Every pair is first shown to
compute the same to 1e-4, and runs with the same compiler setting, but for the
first: there plain Keras is what `fit` does when it is told nothing.
"""

import concurrent.futures
import functools
import multiprocessing
import pathlib
import statistics
import time

import keras
import numpy as np
from keras import ops

from benchmarks import plain
from keras_relational import layers
from keras_relational import models
from keras_relational import random_bits
from keras_relational import training
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import relations_game
from keras_relational.datasets import vaec
from keras_relational.environments import boxworld
from keras_relational.environments import compilation
from keras_relational.environments import goto_object_maze


def main():
    rate = matrix_product_rate()
    backend = keras.backend.backend()
    print(f"Backend {backend}; matrix products at {rate / 1e9:.0f} GFLOP/s")
    print(f"{'':50s}{'plain':>10s}{'ours':>10s}{'ratio':>7s}{'of rate':>9s}")
    images, labels, _ = relations_game.generate("same", 20_000, seed=0)
    training_step(rate, images, labels)
    inference(rate, images)
    entities = np.random.default_rng(0).normal(size=(5_000, 25, 34))
    entities = entities.astype("float32")
    layer_step(
        "PrediNet, head by head",
        rate,
        entities,
        layers.PrediNet(32, 16, 16),
        plain.PlainPrediNet(32, 16, 16),
        predinet_flops,
    )
    layer_step(
        "RelationNetwork, n² pairs concatenated",
        rate,
        entities[:500],  # A step takes some 60 times as long as the others.
        layers.RelationNetwork(640, 256),
        plain.PlainRelationNetwork(640, 256),
        relation_network_flops,
    )
    layer_step(
        "MultiHeadAttentionPooling, head by head",
        rate,
        entities,
        layers.MultiHeadAttentionPooling(32, 16, 20),
        plain.PlainAttentionPooling(32, 16, 20),
        attention_pooling_flops,
    )
    seconds = median_seconds(
        lambda: relations_game.generate("between", 20_000, seed=0)
    )
    analogy_scoring(rate)
    rule_learning(rate)
    simplicial_attention(rate)
    object_files(rate)
    print(f"\nRelations Game: {20_000 / seconds:,.0f} images a second, 1 core")
    seconds = median_seconds(lambda: distribution_of_three.generate(10_000))
    print(f"Distribution of three: {10_000 / seconds:,.0f} problems a second")
    for name, world in {
        "Bridge BoxWorld": boxworld.BridgeBoxWorld(max_episode_steps=120),
        "Maze": goto_object_maze.GotoObjectMaze(),
    }.items():
        print(f"{name}: {rate_of_play(world):,.0f} steps a second")
    for task in bouncing_balls.TASKS:
        seconds = median_seconds(
            functools.partial(bouncing_balls.generate, task, 64)
        )
        print(f"{task}: {64 / seconds:,.0f} videos a second")
    problems, mebibytes = in_a_process(_vaec_epoch)
    print(
        f"VAEC, an epoch drawn at 128 pixels: {problems:,.0f} problems a second"
        f" in {mebibytes:.0f} MiB"
    )
    if backend == "tensorflow":
        agents(rate)


# Floating-point operations of the matrix products, one example forward.
ENCODER = 25 * 432 * 32 * 2


def predinet_flops(n=25, m=34, heads=32, relations=16, key=16):
    queries = n * m * 2 * heads * key
    attention = n * m * key + 2 * heads * n * (key + m)
    return 2 * (queries + attention + heads * m * relations)


def relation_network_flops(n=25, m=34, hidden=256, units=640):
    return 2 * (2 * n * m * hidden + n * n * hidden * units)


def attention_pooling_flops(n=25, m=34, heads=32, key=16, value=20):
    projections = n * m * heads * (2 * key + value)
    return 2 * (projections + heads * n * (n * key + n + value))


def simplicial_flops(n, v, m=64, d=48):
    projections = d * m * (n + 3 * v)
    logits = n * v * d * 2 + v * v * d
    weighted = n * v * v * d
    # B on all pairs of values, or on the outer product of each query.
    b = v * d * d * (v + d) if v < n else n * d * d * (v + d)
    return 2 * (projections + logits + weighted + b)


def agent_flops(network, n=40):
    convolutions = 54 * 12 * 12 + n * 48 * 24
    if network == "convolutional":
        return 2 * (convolutions + n * 24 * 256 + 256 * 256 + 5 * 256)
    block = 3 * n * 64 * 64 + 2 * n * n * 64 + 2 * n * 64 * 64
    if network == "simplicial":
        block += simplicial_flops(n, 2) / 2 + n * 48 * 64
    head = 64 * 256 + 3 * 256 * 256 + 5 * 256
    return 2 * (convolutions + n * 24 * 62 + 2 * block + head)


def training_step(rate, images, labels):
    """One SGD step at batch 10, input included."""
    model = models.relations_classifier()
    reference = plain.plain_classifier(model)
    check_equal(model(images[:10]), reference(images[:10]))
    reference.compile(
        keras.optimizers.SGD(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    theirs = median_epoch(reference, images, labels, epochs=4, batch_size=10)
    steps = len(images) // 10
    curves = training.train_classifier(
        model,
        images,
        labels,
        num_batches=5 * steps,
        batches_per_epoch=steps,
        verbose=0,
    )
    ours = 60 * np.median(np.diff(curves["minutes"]))
    flops = 3 * 10 * (ENCODER + predinet_flops())
    report(
        "Training step, batch 10: fit with defaults",
        theirs / steps,
        ours / steps,
        flops / rate,
    )


def inference(rate, images):
    """Images answered at batch 250, input included."""
    model = models.relations_classifier()
    reference = plain.plain_classifier(model)
    check_equal(model(images[:10]), reference(images[:10]))
    for classifier in (model, reference):
        classifier.compile(jit_compile=True)
    seconds = [
        median_seconds(
            lambda c=classifier: c.predict(images, batch_size=250, verbose=0)
        )
        for classifier in (reference, model)
    ]
    batches = len(images) / 250
    flops = 250 * (ENCODER + predinet_flops())
    report(
        "Inference, batch 250: Keras' Conv2D",
        seconds[0] / batches,
        seconds[1] / batches,
        flops / rate,
    )
    print(f"{'':4s}{len(images) / seconds[1]:,.0f} images a second")


def layer_step(name, rate, entities, layer, reference, flops, batch=10, base=0):
    """Forward and backward through one layer, in one loop of steps.

    With a `base` the layer attends to pairs of the first so many entities.
    """

    def outputs(tested, inputs):
        return tested(inputs, base=inputs[:, :base]) if base else tested(inputs)

    steps = len(entities) // batch
    shape = (batch, *entities.shape[1:])
    layer.build(shape, *([(batch, base, shape[-1])] if base else []))
    reference.build(shape)
    reference.take_weights(layer)
    first = ops.convert_to_tensor(entities[:batch])
    check_equal(outputs(layer, first), outputs(reference, first))
    targets = np.zeros(
        (len(entities), *outputs(layer, first).shape[1:]), "float32"
    )
    seconds = []
    for tested in (reference, layer):
        inputs = keras.Input(entities.shape[1:])
        model = training.MinibatchModel(inputs, outputs(tested, inputs))
        model.compile(keras.optimizers.SGD(1e-6), "mse", jit_compile=True)
        model.evaluate(entities[:batch], targets[:batch], verbose=0)
        blocks = training.Minibatches(entities, targets, batch, steps)
        epoch = median_epoch(model, blocks, steps_per_epoch=1, shuffle=False)
        seconds.append(epoch / steps)
    report(f"{name}, batch {batch}", *seconds, 3 * batch * flops() / rate)


def analogy_scoring(rate):
    """One Adam step on 32 VAEC problems, drawn on the way."""
    model = models.analogy_scorer()
    reference = plain.plain_analogy_scorer(model)
    batches = training.AnalogyBatches(vaec.generate(seed=0))
    inputs, _ = batches[0]
    check_equal(model(inputs), reference(inputs))
    seconds = []
    for scorer in (reference, model):
        scorer.compile(
            keras.optimizers.Adam(1e-9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=keras.backend.backend() == "jax",
        )
        epoch = median_epoch(
            scorer, batches, epochs=4, steps_per_epoch=8, shuffle=False
        )
        seconds.append(epoch / 8)
    report(
        "VAEC, each candidate's images encoded, batch 32",
        *seconds,
        3 * 32 * analogy_flops() / rate,
    )


def object_files(rate):
    """SCOFF, forward and backward, on 64 sequences of 50 steps."""
    batch, time = 64, 50
    inputs = np.random.default_rng(0).normal(size=(4 * batch, time, 128))
    inputs = inputs.astype("float32")

    def seconds(layer, jit_compile=True):
        """Of one time step of training."""
        model = keras.Sequential([keras.Input(inputs.shape[1:]), layer])
        model.compile(
            keras.optimizers.SGD(1e-9), "mse", jit_compile=jit_compile
        )
        targets = np.zeros((*inputs.shape[:2], layer.cell.output_size))
        targets = targets.astype("float32")
        epoch = median_epoch(model, inputs, targets, batch_size=batch)
        return epoch / (4 * time)

    def scoff(num_object_files=6, num_schemata=4):
        return layers.SCOFF(
            *(100, num_object_files, num_schemata),
            value_dim=100,
            return_sequences=True,
        )

    ours = scoff()
    ours.build(inputs.shape)
    reference = keras.layers.RNN(
        plain.PlainSCOFFCell(ours.cell), return_sequences=True
    )
    check_equal(ours(inputs[:2, :10]), reference(inputs[:2, :10]))
    floor = 3 * batch * scoff_flops() / rate
    took = seconds(reference), seconds(ours)
    report("SCOFF, file by file, a time step of 64", *took, floor)
    if keras.backend.backend() == "tensorflow":
        took = seconds(reference, False), seconds(ours, False)
        report("SCOFF, the same without XLA", *took, floor)
    others = {
        f"{name}={number}": scoff(**{name: number})
        for name, numbers in (
            ("num_schemata", (1, 2, 8)),
            ("num_object_files", (3, 12)),
        )
        for number in numbers
    }
    for dynamics in ("gru", "lstm"):
        others[f"RIMs, {dynamics}"] = layers.RIMs(
            *(100, 6, 4, dynamics), value_dim=100, return_sequences=True
        )
    for name, layer in others.items():
        print(f"    {name}: {1e3 * seconds(layer):.2f} ms", flush=True)


def scoff_flops(files=6, schemata=4, units=100, m=128, key=64, value=100):
    of_inputs = m * (key + value)
    gates = schemata * 3 * units * (value + units)
    messages = 4 * 32 * (4 * units + 2 * files)
    of_a_file = units * key + gates + 2 * units * key + messages
    return 2 * (of_inputs + files * of_a_file)


def rule_learning(rate):
    """ESBN, multiple choice on images, batch 32: training and inference."""
    fillers = distribution_of_three.glyphs()
    problems, _ = distribution_of_three.load_data(0, num_train=3_200)
    model = models.rule_learner(models.filler_autoencoder())
    reference = plain.plain_rule_learner(model)
    known = models.over_fillers(model, fillers)
    images = fillers[problems.fillers]
    check_equal(model(images[:32]), reference(images[:32]))
    check_equal(model(images[:32]), known(problems.fillers[:32]))
    training_seconds, inference_seconds = [], []
    for learner, x in (
        (reference, images),
        (model, images),
        (known, problems.fillers),
    ):
        learner.compile(
            keras.optimizers.Adam(1e-9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=True,
        )
        epoch = median_epoch(learner, x, problems.labels, batch_size=32)
        training_seconds.append(epoch / 100)
        seconds = median_seconds(
            lambda m=learner, x=x: m.predict(x, batch_size=32, verbose=0)
        )
        inference_seconds.append(seconds / 100)
    flops = 32 * rule_flops() / rate
    for what, (theirs, ours, with_known), floor in (
        ("training", training_seconds, 3 * flops),
        ("inference", inference_seconds, flops),
    ):
        report(f"ESBN {what}, step by step, batch 32", theirs, ours, floor)
        print(
            f"    fillers known: {with_known * 1e3:.1f} ms; "
            f"{32 / ours:,.0f} and {32 / with_known:,.0f} problems a second"
        )


def rule_flops(time=9, units=512, key_dim=256):
    convolutions = sum(
        size**2 * 16 * channels * 32
        for size, channels in ((16, 1), (8, 32), (4, 32))
    )
    encoder = time * (convolutions + 512 * 256 + 256 * 128)
    lstm = (time + 1) * 4 * units * (units + key_dim)
    return 2 * (encoder + lstm + time * units * (key_dim + 1))


def analogy_flops(num_images=7, num_terms=4, units=256):
    sizes = (64, 32, 16, 8)
    convolutions = sum(
        size**2 * 16 * channels * 32
        for size, channels in zip(sizes, (3, 32, 32, 32), strict=True)
    )
    dense = 2048 * units + 2 * units**2
    lstm = num_images * num_terms * 8 * units**2
    return 2 * (num_images * (convolutions + dense) + lstm)


def _vaec_epoch():
    """Problems a second, and the MiB that they add to this process."""
    before = _status("VmHWM")
    batches = training.AnalogyBatches(vaec.generate(seed=0))
    batches[0]
    num_batches = 19_040 // 32
    started = time.perf_counter()
    for number in range(num_batches):
        batches[number]
    seconds = time.perf_counter() - started
    return 32 * num_batches / seconds, _status("VmHWM") - before


def simplicial_attention(rate):
    """Time and peak memory beside the direct einsum."""
    for n, v, batch in (
        (40, 2, 1280),
        (256, 2, 4),
        (256, 8, 4),
        (256, 32, 4),
        (256, 64, 4),
    ):
        rng = np.random.default_rng(0)
        entities = rng.normal(size=(3 * batch, n, 64)).astype("float32")
        layer_step(
            f"2-simplicial, N = {n}, M = {v}",
            rate,
            entities,
            layers.TwoSimplicialAttention(1, 48),
            plain.PlainTwoSimplicialAttention(48),
            functools.partial(simplicial_flops, n, v),
            batch,
            v,
        )
        report_peak_memory(n, v, batch)
    print("2-simplicial, N = 256, M = 256, batch 4")
    report_peak_memory(256, 256, 4)


def report_peak_memory(n, v, batch):
    theirs, ours = (
        peak_memory(kind, n, v, batch) for kind in ("plain", "ours")
    )
    print(
        f"{'':4s}{'peak memory':46s}{theirs:6.0f} MiB{ours:6.0f} MiB"
        f"{theirs / ours:7.1f}",
        flush=True,
    )


def peak_memory(kind, n, v, batch):
    """MiB that compiling a step leaves, and a step takes (Linux)."""
    return in_a_process(_added_memory, kind, n, v, batch)


def in_a_process(function, *arguments):
    with concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn")
    ) as pool:
        return pool.submit(function, *arguments).result()


def _added_memory(kind, n, v, batch):
    tested = layers.TwoSimplicialAttention(1, 48)
    if kind == "plain":
        tested = plain.PlainTwoSimplicialAttention(48)
    inputs = keras.Input((n, 64))
    model = keras.Model(inputs, tested(inputs, base=inputs[:, :v]))
    model.compile("sgd", "mse", jit_compile=True)
    x = np.zeros((batch, n, 64), "float32")
    y = np.zeros((batch, n, 48), "float32")
    model.train_on_batch(x[:1], y[:1])
    before = _status("VmRSS")
    model.train_on_batch(x, y)
    # What compiling takes for a while is not counted, only what is kept.
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # Resets the peak.
    model.train_on_batch(x, y)
    return _status("VmHWM") - before


def _status(name):
    """A line of Linux' account of this process, in MiB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise KeyError(name)


def agents(rate):
    """Frames a second of acting and learning, bridge BoxWorld on 7 x 9."""
    from keras_relational.environments import tf_agents_environment
    from keras_relational.training import impala

    print(
        "\nIMPALA, 32 episodes, 40 steps     act     learn   frames/s  of rate"
    )
    for network in models.NETWORKS:
        environment = tf_agents_environment.WorldTFEnvironment(
            boxworld.BridgeBoxWorld(), batch_size=32
        )
        model = models.boxworld_agent(network)
        agent = impala.ImpalaAgent(
            environment.time_step_spec(), environment.action_spec(), model
        )
        training_ = impala.ActorLearner(agent, environment)
        act = median_seconds(lambda t=training_: t.act()[0].reward.numpy())
        trajectory, _ = training_.act()
        learn = median_seconds(
            lambda a=agent, t=trajectory: a.learn(t).loss.numpy()
        )
        both = median_seconds(lambda t=training_: t.train()[0].loss.numpy())
        # Forward to act; forward and backward to learn.
        flops = agent_flops(network) * (1_280 + 3 * 1_312)
        print(
            f"    {network:24s}{act * 1e3:7.1f} ms{learn * 1e3:7.1f} ms"
            f"{1_280 / both:11,.0f}{flops / rate / both:9.0%}",
            flush=True,
        )


def rate_of_play(world, batch=1024, steps=100):
    """Steps a second of random play, an image each step.

    Finished episodes are replaced by freshly made ones.
    """

    def play(state):
        def step(_, carry):
            state, brightness = carry
            actions = 4 * random_bits.random_uniform(
                state["seed"], state["episode"], state["steps"]
            )
            state, _, *ends = world.step(state, ops.floor(actions))
            state = world.restart(state, ends[0] | ends[1])
            # So that the image is needed.
            pixels = ops.cast(world.render(state)[:, :, :, 0], "int32")
            return state, brightness + ops.sum(pixels)

        zero = ops.convert_to_tensor(0, "int32")
        return ops.fori_loop(0, steps, step, (state, zero))

    play = compilation.compiled(play)
    state = world.reset(np.arange(batch))
    seconds = median_seconds(lambda: ops.convert_to_numpy(play(state)[1]))
    return batch * steps / seconds


def report(name, theirs, ours, floor):
    print(
        f"{name:50s}{theirs * 1e3:7.2f} ms{ours * 1e3:7.2f} ms"
        f"{theirs / ours:7.1f}{floor / ours:9.0%}",
        flush=True,
    )


def median_epoch(model, *data, epochs=6, **arguments):
    """Seconds an epoch of `fit` takes; the first, which compiles, is left out.

    The end of an epoch waits for its loss, hence for all its steps.
    """
    ends = []
    timer = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter())
    )
    arguments |= {"epochs": epochs, "callbacks": [timer], "verbose": 0}
    model.fit(*data, **arguments)
    return statistics.median(np.diff(ends))


def median_seconds(function, repeats=5):
    function()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def matrix_product_rate(size=2048):
    """FLOP/s of one large float32 product on this machine."""
    a = ops.convert_to_tensor(
        np.random.default_rng(0).normal(size=(size, size)), dtype="float32"
    )
    seconds = median_seconds(lambda: ops.convert_to_numpy(ops.matmul(a, a)))
    return 2 * size**3 / seconds


def check_equal(ours, theirs):
    np.testing.assert_allclose(
        ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs), atol=1e-4
    )


if __name__ == "__main__":
    main()

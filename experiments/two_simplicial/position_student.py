"""Single positions of BoxWorld, and a model that learns from them.

An agent that plays sees frames that are much alike, and seldom one where the
choice is hard. The positions here are eight moves apart. Two hints come with
each: which tiles have one colour, and which locks lose. An agent that attends
to equal colours can tell a bridge, and play alone does not teach it to.
"""

import functools
import threading

import keras
import numpy as np
from keras import ops

from experiments.generated_batches import GeneratedBatches
from keras_relational import models
from keras_relational.agents.teacher import expert_log_probs
from keras_relational.agents.teacher import taught_logits
from keras_relational.counter_based_random import random_draws
from keras_relational.environments import boxworld
from keras_relational.environments.compilation import compiled
from keras_relational.layers import SimplicialTransformerBlock
from keras_relational.random_streams import stream

_APART, _POSITIONS = 8, 8  # Moves between positions; positions of an episode.
_BATCHES = 32  # Batches that are made at a time.
_TAUGHT = 0.7  # Share of the moves that are the teacher's. Others are random.


class PositionBatches(GeneratedBatches):
    """Positions of BoxWorld without end, with expert actions and two hints.

    In each episode a teacher makes 70 % of the moves, and the others are
    random. Eight positions are taken from it, or from those that follow it,
    eight moves apart. An item is a pair of uint8 images `(batch_size, rows,
    columns + 1, 3)` and a dictionary:

    - `"policy"`: booleans `(batch_size, 4)`, the expert actions.
    - `"losing"`: booleans `(batch_size, n)`. `True` marks an entity with a lock
      that ends the episode in its middle.
    - `"attention"`: float32 `(batch_size, 2, n, n)`, what `same_colour` of
      `environments.boxworld` marks, divided by its number in each row.
    """

    def __init__(self, world, batch_size=64, initial_batch=0, seed=0):
        generate = functools.partial(_positions, world)
        super().__init__(generate, batch_size, initial_batch, seed)
        # `fit` asks from two threads, which may be in two chunks at a time.
        self._lock = threading.Lock()
        self._chunk = functools.lru_cache(maxsize=2)(self._make)

    def __getitem__(self, index):
        chunk, number = divmod(self.initial_batch + index, _BATCHES)
        with self._lock:
            made = self._chunk(chunk)
        rows = slice(number * self.batch_size, (number + 1) * self.batch_size)
        images, experts, losing = (x[rows].copy() for x in made)
        same = boxworld.same_colour(images).astype("float32")
        same /= np.maximum(same.sum(-1, keepdims=True), 1)
        answers = {"policy": experts, "losing": losing, "attention": same}
        return images, answers

    def _make(self, chunk):
        size = _BATCHES * self.batch_size
        return self.generate(size, stream(self.seed, "batch", chunk))


def _positions(world, n, seed):
    """Images, expert actions and losing locks, shuffled."""
    rng = np.random.default_rng(seed)
    count = n // _POSITIONS
    # Seeds from 10⁹ on are those of tests.
    seeds = rng.integers(0, 10**9, count, dtype="uint32")
    state, found = world.reset(seeds), []
    moves_seed = rng.integers(2**32, dtype="uint32")
    advance = _compiled_advance(world)
    for number in range(_POSITIONS):
        state, *position = advance(state, moves_seed, np.int32(number * _APART))
        found.append([ops.convert_to_numpy(x) for x in position])
    order = rng.permutation(_POSITIONS * count)
    return [np.concatenate(x)[order] for x in zip(*found, strict=True)]


@functools.lru_cache(maxsize=8)
def _compiled_advance(world):
    """Compiled `_advance` for a world, once for all equal worlds."""
    return compiled(functools.partial(_advance, world))


def _advance(world, state, seed, first):
    """Makes moves. Returns the state, its images and the answers."""
    rows = ops.arange(ops.shape(state["steps"])[0])

    def move(number, carry):
        state, over = carry
        experts = world.expert_moves(state)
        alike = ops.zeros_like(experts, dtype="float32")
        logits = taught_logits(alike, experts, _TAUGHT)
        actions = random_draws(logits, seed, first + number, rows[:, None])
        state, _, terminated, truncated = world.step_or_restart(
            state, actions, over
        )
        return state, terminated | truncated

    nowhere = ops.zeros_like(state["steps"], dtype="bool")
    state, over = ops.fori_loop(0, _APART, move, (state, nowhere))
    state = world.restart(state, over)
    losing = world.losing_tiles(state)
    losing = ops.reshape(losing, (-1, world.rows, world.columns))
    # The middles of entities are tiles that are not on the edge.
    losing = losing[:, 1:-1, 1:]
    losing = ops.reshape(losing, (losing.shape[0], -1))
    return state, world.render(state), world.expert_moves(state), losing


def position_student(agent, learning_rate, attention_weight=0.6):
    """A model that trains an agent on `PositionBatches`, compiled.

    The loss of a position is

        loss = − log Σ_expert actions π(action)
               + Σ_locks cross-entropy(loses, σ(wᵀ e + b))
               − attention_weight · mean Σ_j t_j log a_j

    with the policy π of the agent, and the entities e after its Transformer
    block. In the attention a of the first iteration the first head shall attend
    from each key or lock to the others of its colour, all alike (t), and the
    second head from the lock of a box to the colour of its key. w and b serve
    training alone.
    """
    block = models.part(agent, "block")
    inputs, after = [models.part(agent, "entities").output], block.output
    if isinstance(block, SimplicialTransformerBlock):
        inputs.append(models.part(agent, "virtual_entities").output)
        after, _ = after
    entities, scores = _WithScores(block, name="with_scores")(*inputs)
    policy = models.part(agent, "policy").output
    policy = keras.Model(after, policy, name="after_block")(entities)
    losing = keras.layers.Dense(1, name="losing")(entities)
    outputs = {
        "policy": policy,
        "losing": ops.squeeze(losing, -1),
        "attention": scores[:, 0],
    }
    student = keras.Model(agent.input, outputs, name="student")
    student.dtype_policy = agent.dtype_policy  # Keras takes the global one.
    student.compile(
        keras.optimizers.Adam(learning_rate, beta_2=0.99, epsilon=1e-8),
        {
            "policy": _expert_actions_loss,
            "losing": keras.losses.BinaryCrossentropy(from_logits=True),
            "attention": _attention_loss,
        },
        loss_weights={
            "policy": 1.0,
            "losing": float(entities.shape[1]),  # Keras has the mean.
            "attention": attention_weight,
        },
        jit_compile=keras.backend.backend() != "torch",
    )
    return student


class _WithScores(keras.layers.Layer):
    """A Transformer block, with the scores of its standard attention.

    Keras cannot build a graph in which the second call of a layer has scores.
    """

    def __init__(self, block, **kwargs):
        super().__init__(**kwargs)
        self.block = block

    def call(self, *entities):
        outputs, scores = self.block(*entities, return_attention_scores=True)
        if isinstance(self.block, SimplicialTransformerBlock):
            outputs, scores = outputs[0], scores[0]
        return outputs, scores


def _expert_actions_loss(expert_actions, logits):
    """− log Σ_expert actions π(action)."""
    return -expert_log_probs(ops.log_softmax(logits), expert_actions > 0)


def _attention_loss(targets, scores):
    """Mean cross-entropy over the rows of attention that have targets."""
    entropies = -ops.sum(targets * ops.log(scores + 1e-9), axis=-1)
    count = ops.sum(targets, axis=(1, 2, 3))
    return ops.sum(entropies, axis=(1, 2)) / ops.maximum(count, 1)

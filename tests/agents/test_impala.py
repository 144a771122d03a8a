import agents_for_tests as agents

# isort: split
import itertools

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from agents_for_tests import assert_all_equal
from agents_for_tests import assert_all_moved
from agents_for_tests import numbers
from tf_agents.drivers import dynamic_step_driver
from tf_agents.drivers import py_driver
from tf_agents.metrics import tf_metrics
from tf_agents.policies import py_tf_eager_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import time_step as ts

from keras_relational.agents.actor_learner import ActorLearner
from keras_relational.agents.agent import ImpalaAgent
from keras_relational.counter_based_random import random_draws
from keras_relational.environments.goto_object_maze import GotoObjectMaze
from keras_relational.environments.tf_agents_environment import (
    GymnasiumPyEnvironment,
)
from keras_relational.environments.tf_agents_environment import (
    WorldTFEnvironment,
)


def copies(nest):
    return tf.nest.map_structure(tf.identity, nest)


def batch_first(trajectory):
    return tf.nest.map_structure(
        lambda x: tf.experimental.numpy.swapaxes(x, 0, 1), trajectory
    )


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def slow_outputs(weights, trajectory):
    """log π and V of all frames, by `small_model`'s weights, in float64."""
    hidden, bias, *heads = (w.astype("float64") for w in weights)
    images = trajectory.observation.numpy()
    x = images.reshape(*images.shape[:2], 63) / 255
    x = np.tanh(x @ hidden + bias)
    # One value, or four logits.
    outputs = {
        len(bias): x @ kernel + bias for kernel, bias in (heads[:2], heads[2:])
    }
    return log_softmax(outputs[4]), outputs[1][..., 0]


def slow_targets(agent, learned, values, trajectory):
    """Advantages and targets, step by step, and which steps there are."""
    time, batch = trajectory.reward.shape
    behaviour = log_softmax(trajectory.policy_info["logits"].numpy())
    advantages, targets, there = np.zeros((3, time - 1, batch))
    for b in range(batch):
        target = values[-1, b]
        for t in reversed(range(time - 1)):
            if trajectory.step_type[t, b] == 2:
                target = values[t, b]
                continue
            action = trajectory.action[t, b]
            ratio = np.exp((learned - behaviour)[t, b, action])
            rho, c = min(agent.clip_rho, ratio), min(agent.clip_c, ratio)
            gamma = agent.gamma * trajectory.discount[t, b].numpy()
            reward = trajectory.reward[t, b].numpy()
            advantages[t, b] = rho * (reward + gamma * target - values[t, b])
            delta = rho * (reward + gamma * values[t + 1, b] - values[t, b])
            correction = gamma * c * (target - values[t + 1, b])
            target = targets[t, b] = values[t, b] + delta + correction
            there[t, b] = 1
    return advantages, targets, there


def slow_losses(outputs, held, trajectory, share):
    """Of policy, values, entropy, and in all with this share of a teacher."""
    learned, values = (x[:-1] for x in outputs)
    advantages, targets, there = held
    actions = trajectory.action.numpy()[:-1, :, None]
    log_probs = np.take_along_axis(learned, actions, axis=-1)[..., 0]
    policy = -np.sum(there * advantages * log_probs)
    value = np.sum(there * (targets - values) ** 2) / 2
    entropy = -np.sum(there[..., None] * np.exp(learned) * learned)
    imitation = 0
    experts = trajectory.policy_info["expert_actions"].numpy()[:-1]
    for moves, logs in zip(experts[there > 0], learned[there > 0], strict=True):
        if moves.any():
            imitation -= np.log(np.exp(logs)[moves].sum())
    total = (1 - share) * (policy - 5e-3 * entropy) + 0.5 * value
    return policy, value, entropy, total + share * imitation


def trajectory_with_a_teacher():
    trajectory = agents.random_trajectory()
    experts = np.random.default_rng(1).random((8, 3, 4)) < 0.4
    experts[1, 1] = False
    info = {**trajectory.policy_info, "expert_actions": tf.constant(experts)}
    return trajectory._replace(policy_info=info)


@pytest.mark.parametrize(
    ("clip_rho", "clip_c", "share"), [(1.0, 1.0, 0.0), (0.7, 1.3, 0.6)]
)
def test_losses_are_those_of_a_slow_loop(clip_rho, clip_c, share):
    """A teacher has 3/4 of its share after one of four updates."""
    agent = agents.small_agent(
        clip_rho=clip_rho,
        clip_c=clip_c,
        gamma=0.9,
        teacher_share=share,
        teacher_updates=4,
    )
    trajectory = trajectory_with_a_teacher()
    outputs = slow_outputs(numbers(agent.network.values), trajectory)
    held = slow_targets(agent, *outputs, trajectory)
    *terms, total = slow_losses(outputs, held, trajectory, 0.75 * share)
    state = {**agent.state, "train_step": tf.constant(1, tf.int64)}
    _, info = agent.update(state, trajectory)
    np.testing.assert_allclose(info.extra[:3], terms, rtol=1e-5)
    np.testing.assert_allclose(info.loss, total, rtol=1e-5)


def test_gradient_is_the_slope_of_the_loss():
    """Targets and advantages stand still: only V and log π move."""
    agent = agents.small_agent(
        gradient_clipping=1e9, gamma=0.9, teacher_share=0.4
    )
    trajectory = trajectory_with_a_teacher()
    weights = numbers(agent.network.values)
    outputs = slow_outputs(weights, trajectory)
    held = slow_targets(agent, *outputs, trajectory)

    def loss(weights):
        outputs = slow_outputs(weights, trajectory)
        return slow_losses(outputs, held, trajectory, 0.4)[-1]

    with tf.GradientTape() as tape:
        ours, _ = agent._losses(list(agent.network.values), trajectory, 0.4)
    gradients = tape.gradient(ours, list(agent.network.values))
    rng = np.random.default_rng(0)
    for number, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        ends = []
        for h in (1e-5, -1e-5):
            moved = [w.astype("float64") for w in weights]
            moved[number] += h * direction
            ends.append(loss(moved))
        slope = (ends[0] - ends[1]) / 2e-5
        assert abs(slope) > 1e-2
        np.testing.assert_allclose(
            np.sum(gradient * direction), slope, rtol=1e-3
        )
    squares = sum(np.sum(np.square(gradient)) for gradient in gradients)
    _, info = agent.update(agent.state, trajectory)
    np.testing.assert_allclose(info.extra.gradient_norm**2, squares, rtol=1e-4)


def acted(training):
    """Of all moves made: the policy, the one that moved, the expert's."""
    before = copies(training.state)
    _, _, trajectory, _ = training._act(before)
    own, _, _ = training.agent.network(
        before["agent"]["weights"],
        trajectory.observation,
        trajectory.is_first(),
        before["actor"]["policy_state"],
    )
    info = trajectory.policy_info
    there = ~trajectory.is_boundary().numpy()[:-1]
    own, behaviour, experts, action = (
        x.numpy()[:-1][there]
        for x in (
            own,
            info["logits"],
            info["expert_actions"],
            trajectory.action,
        )
    )
    first = training.environment.world.expert_moves(before["environment"][0])
    np.testing.assert_array_equal(info["expert_actions"][0], first)
    own, behaviour = (np.exp(log_softmax(x)) for x in (own, behaviour))
    return own, behaviour, experts, action


@pytest.mark.parametrize("moves", [0.8, 1.0])
def test_a_teacher_makes_its_share_of_the_moves_within_its_updates(moves):
    environment = agents.small_environment(batch_size=200)
    teacher = {"teacher_share": 1.0, "teacher_moves": moves}
    agent = agents.small_agent(environment, **teacher, teacher_updates=10)
    training = ActorLearner(agent, environment, unroll_length=9)
    for updates, left in ((0, 1), (5, 0.5), (10, 0), (20, 0)):
        agent.train_step_counter.assign(updates)
        own, behaviour, experts, action = acted(training)
        expected = (1 - left * moves) * own
        expected += left * moves * experts / experts.sum(1, keepdims=True)
        np.testing.assert_allclose(behaviour, expected, atol=1e-6)
        is_expert = experts[np.arange(len(action)), action]
        assert is_expert.mean() == pytest.approx(
            (behaviour * experts).sum(1).mean(), abs=0.05
        )
    agent = agents.small_agent(environment, **teacher)
    assert float(agent.teacher_fading(1_000)) == 1


@pytest.mark.parametrize("recurrent", [False, True])
def test_the_policy_is_found_by_its_role(recurrent):
    """In whatever order a model returns policy and value."""
    model = agents.small_model(recurrent)
    policy, value, *states = model.outputs
    swapped = keras.Model(model.inputs, [value, policy, *states])
    environment = agents.small_environment()
    specs = environment.time_step_spec(), environment.action_spec()
    policies = [ImpalaAgent(*specs, x).collect_policy for x in (model, swapped)]
    step = environment.reset()
    one, other = (
        x.action(step, x.get_initial_state(environment.batch_size)).info
        for x in policies
    )
    np.testing.assert_array_equal(one["logits"], other["logits"])


def test_agent_of_a_mixed_policy():
    environment = agents.small_environment()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        agent = agents.small_agent(environment, recurrent=True)
    finally:
        keras.config.set_dtype_policy("float32")
    training = ActorLearner(agent, environment, unroll_length=5)
    weights = agent.network.values[: agent.network.num_trainable]
    before = numbers(weights)
    info, _ = training.train()
    assert np.isfinite(info.loss)
    assert {x.dtype.name for x in before} == {"float32"}
    assert_all_moved(before, weights)


def test_update_follows_the_formula():
    """r ← p r + (1 − p) g², w ← w − κ g / √(r + ε), twice over."""
    agent = agents.small_agent(gradient_clipping=0.5)
    trajectory = agents.random_trajectory()
    mean_squares = [np.zeros(v.shape) for v in agent.network.values]
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss, _ = agent._losses(list(agent.network.values), trajectory)
        gradients = numbers(tape.gradient(loss, list(agent.network.values)))
        norm = np.sqrt(sum(np.sum(g.astype("float64") ** 2) for g in gradients))
        assert norm > 0.5
        expected = []
        for i, g in enumerate(gradients):
            g = g.astype("float64") * 0.5 / norm
            mean_squares[i] = 0.99 * mean_squares[i] + 0.01 * g**2
            step = 2e-4 * g / np.sqrt(mean_squares[i] + 0.1)
            expected.append(np.array(agent.network.values[i]) - step)
        before = numbers(agent.network.values)
        info = agent.train(batch_first(trajectory))
        np.testing.assert_allclose(info.extra.gradient_norm, norm, rtol=1e-5)
        for old, new, value in zip(
            before, numbers(agent.network.values), expected, strict=True
        ):
            np.testing.assert_allclose(new - old, value - old, atol=3e-8)
    assert int(agent.train_step_counter) == 2


def test_parts_of_the_episodes_are_equal_and_add_up():
    trajectory = agents.random_trajectory(batch=6)  # 8 frames an episode.
    agent = agents.small_agent(microbatch_frames=None)
    whole = agent.update(agent.state, trajectory)
    expected = {None: 1, 48: 1, 47: 2, 16: 3, 15: 6, 1: 6}
    for agent.microbatch_frames, parts in expected.items():
        assert agent._num_microbatches(trajectory) == parts
        found = agent.update(agent.state, trajectory)
        assert_all_equal(found, whole, rtol=1e-5, atol=1e-6)
    # A memory runs over all episodes at once.
    agent = agents.small_agent(recurrent=True, microbatch_frames=1)
    assert agent._num_microbatches(trajectory) == 1


def test_an_embedding_learns():
    """Its gradient is sparse, and is summed over parts like any other."""
    keras.utils.set_random_seed(0)
    images = keras.Input((3, 7, 3), dtype="uint8")
    x = keras.layers.Embedding(256, 2)(images)
    x = keras.layers.Flatten()(x)
    outputs = keras.layers.Dense(4, name="policy")(x), x[:, 0]
    environment = agents.small_environment()
    agent = ImpalaAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        keras.Model(images, outputs),
    )
    trajectory = agents.random_trajectory(batch=6)
    found = []
    for agent.microbatch_frames in (None, 16):
        found.append(agent.update(agent.state, trajectory))
    assert_all_equal(*found, rtol=1e-5, atol=1e-6)
    assert_all_moved(numbers(agent.network.values), found[0][0]["weights"])


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_driver_plays_in_gymnasium_and_the_agent_learns(recurrent):
    """As the guide on agents shows it, with a memory too."""
    envs = gymnasium.make_vec(
        "keras_relational:keras_relational/BoxWorld-v0",
        num_envs=3,
        rows=3,
        columns=6,
        solution_length=(1, 1),
        num_distractors=(0, 0),
        max_episode_steps=4,
    )
    environment = GymnasiumPyEnvironment(envs, seed=0)
    agent = agents.small_agent(environment, recurrent)
    policy = py_tf_eager_policy.PyTFEagerPolicy(
        agent.collect_policy, use_tf_function=True, batch_time_steps=False
    )
    seen = []
    driver = py_driver.PyDriver(
        environment, policy, observers=[seen.append], max_steps=24
    )
    driver.run(environment.reset(), policy.get_initial_state(batch_size=3))
    trajectory = tf.nest.map_structure(lambda *x: np.stack(x), *seen)
    logits, _, _ = agent.network(
        agent.network.values,
        tf.constant(trajectory.observation),
        tf.constant(trajectory.is_first()),
        [tf.constant(x[0]) for x in trajectory.policy_info.get("state", ())],
    )
    there = trajectory.step_type != ts.StepType.LAST
    np.testing.assert_allclose(
        trajectory.policy_info["logits"][there], logits[there], atol=1e-5
    )
    weights = agent.network.values[: agent.network.num_trainable]
    before = numbers(weights)
    agent.learn(trajectory)
    assert_all_moved(before, weights)


def test_learning_rate_of_a_schedule():
    rates = keras.optimizers.schedules.PolynomialDecay(0.1, 2, 0.0)
    trajectory = agents.random_trajectory()
    agent = agents.small_agent(learning_rate=rates)
    states = [agent.state]
    for _ in range(3):
        states.append(agent.update(states[-1], trajectory)[0])
    constant = agents.small_agent(learning_rate=0.1)
    expected, _ = constant.update(constant.state, trajectory)
    assert_all_equal(states[1]["weights"], expected["weights"])
    weights = [numbers(state["weights"]) for state in states]
    steps = [
        max(np.abs(x - y).max() for x, y in zip(new, old, strict=True))
        for old, new in itertools.pairwise(weights)
    ]
    assert steps[0] > steps[1] > 0 == steps[2]


def test_actors_take_the_weights_at_intervals():
    lagging = agents.small_training(broadcast_interval=3)
    agent = lagging.agent
    for update in range(1, 8):
        before = numbers(lagging.state["actor"]["weights"])
        lagging.train()
        learner = numbers(agent.state["weights"])
        actors = numbers(lagging.state["actor"]["weights"])
        assert_all_equal(actors, learner if update % 3 == 0 else before)
        assert (update % 3 == 0) == np.array_equal(actors[0], learner[0])
    # They act by the weights that they have.
    before = copies(lagging.state)
    _, _, trajectory, _ = lagging._act(before)
    logits = {
        name: agent.network(
            before[name]["weights"],
            trajectory.observation,
            trajectory.is_first(),
            before["actor"]["policy_state"],
        )[0].numpy()
        for name in ("actor", "agent")
    }
    # Nobody acts at the last frame.
    acted = trajectory.policy_info["logits"][:-1].numpy()
    np.testing.assert_allclose(acted, logits["actor"][:-1], atol=1e-5)
    assert np.abs(acted - logits["agent"][:-1]).max() > 1e-4


def test_actions_are_drawn_by_seed_step_and_row():
    """From the policy, of every row and step on its own."""
    for seed in (0, 1):
        training = agents.small_training()
        training.state["actor"]["seed"].assign(seed)
        seen = [training.act()[0] for _ in range(3)]
        # The last frame is the first of the next trajectory.
        actions = np.concatenate([x.action[:-1] for x in seen])
        logits = np.concatenate([x.policy_info["logits"][:-1] for x in seen])
        for step in range(30):
            expected = random_draws(
                logits[step],
                np.uint32(seed),
                np.uint32(step),
                np.arange(8)[:, None],
            )
            np.testing.assert_array_equal(actions[step], expected)


@pytest.mark.parametrize("recurrent", [False, True])
def test_one_function_does_what_driver_and_agent_do(recurrent):
    """The trajectory acted out, given to `agent.train`, makes the same step."""
    training = agents.small_training(recurrent)
    agent, environment = training.agent, training.environment
    training.train()
    before = copies(training.state)
    _, _, trajectory, episodes = training._act(before)
    assert trajectory.reward.shape == (11, 8)
    assert bool(tf.reduce_any(trajectory.is_boundary()))
    # Frame by frame it is what the environment's own step makes.
    for t in range(10):
        time_step = environment.step(trajectory.action[t])
        np.testing.assert_array_equal(
            time_step.observation, trajectory.observation[t + 1]
        )
        np.testing.assert_array_equal(time_step.reward, trajectory.reward[t])
        np.testing.assert_array_equal(time_step.reward, episodes.rewards[t])
        np.testing.assert_array_equal(time_step.is_last(), episodes.is_last[t])
    # And the logits are those of the policy.
    policy_state = before["actor"]["policy_state"]
    step = before["environment"][1]
    for t in range(10):
        distribution = agent.collect_policy.distribution(step, policy_state)
        np.testing.assert_allclose(
            distribution.info["logits"],
            trajectory.policy_info["logits"][t],
            atol=1e-5,
        )
        policy_state = distribution.state
        step = step._replace(
            step_type=trajectory.step_type[t + 1],
            observation=trajectory.observation[t + 1],
        )
    agent.train(batch_first(trajectory))
    by_hand = numbers(agent.state)
    tf.nest.map_structure(lambda x, v: x.assign(v), training.state, before)
    training.train()
    assert_all_equal(by_hand, agent.state, rtol=1e-7, atol=1e-6)


def test_episodes_and_metrics_count():
    training = agents.small_training()
    episodes = [training.train()[1] for _ in range(6)]
    is_last = np.concatenate([x.is_last for x in episodes])
    lengths = np.concatenate([x.lengths for x in episodes])
    assert int(training.num_episodes.result()) == is_last.sum()
    assert is_last.sum() >= 8 * 5
    assert lengths[is_last].max() == 10
    # Whole episodes, and those that are still going on.
    steps = lengths[is_last].sum() + lengths[-1][~is_last[-1]].sum()
    assert int(training.environment_steps.result()) == steps


@pytest.mark.parametrize("recurrent", [False, True, "scoff"])
def test_every_weight_moves_and_is_checkpointed(recurrent, tmp_path):
    training = agents.small_training(recurrent)
    agent, model = training.agent, training.agent.network.model
    ids = {id(v) for v in agent.collect_policy.variables()}
    assert ids == {id(v.value) for v in model.variables}
    assert ids == {id(v) for v in agent.policy.variables()}
    before = numbers(model.trainable_variables)
    training.train()
    training.train()
    assert_all_moved(before, model.trainable_variables)
    checkpoint = tf.train.Checkpoint(agent=agent)
    path = checkpoint.write(str(tmp_path / "agent"))
    expected = numbers(model.variables)
    for variable in model.variables:
        variable.assign(keras.ops.zeros_like(variable))
    checkpoint.read(path).assert_consumed()
    assert_all_equal(model.variables, expected)


@pytest.mark.parametrize("recurrent", [False, True])
def test_with_a_driver_and_a_replay_buffer_of_tf_agents(recurrent):
    environment = agents.small_environment()
    agent = agents.small_agent(environment, recurrent)
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, environment.batch_size, max_length=20
    )
    episodes = tf_metrics.NumberOfEpisodes()
    driver = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch, episodes],
        num_steps=4 * 15,
    )
    driver.run()
    assert int(episodes.result()) > 0
    info = agent.train(buffer.gather_all())
    assert np.isfinite(info.loss)
    assert int(agent.train_step_counter) == 1
    # The greedy one is tf-agents' own.
    step = environment.current_time_step()
    state = agent.policy.get_initial_state(4)
    likeliest = agent.collect_policy.distribution(step, state).action.mode()
    np.testing.assert_array_equal(
        agent.policy.action(step, state).action, likeliest
    )


def test_refuses_arguments():
    environment = agents.small_environment()
    agent = agents.small_agent(environment)
    with pytest.raises(ValueError, match="unroll_length=0"):
        ActorLearner(agent, environment, unroll_length=0)
    for wrong in (
        {"teacher_share": 1.5},
        {"teacher_moves": -0.1},
        {"teacher_updates": 0},
    ):
        ((name, value),) = wrong.items()
        with pytest.raises(ValueError, match=f"{name}={value}"):
            agents.small_agent(environment, **wrong)
    taught = agents.small_agent(environment, teacher_share=0.5)
    maze = WorldTFEnvironment(GotoObjectMaze(6, 1), 2)
    with pytest.raises(ValueError, match=r"expert_moves.*GotoObjectMaze"):
        ActorLearner(taught, maze)
    images = keras.Input((3, 7, 3), dtype="uint8")
    x = keras.layers.Flatten()(images)
    wrong = keras.Model(
        images, [keras.layers.Dense(3)(x), keras.layers.Dense(1)(x)]
    )
    with pytest.raises(ValueError, match="actions are 0 to 3, and the model's"):
        ImpalaAgent(
            environment.time_step_spec(), environment.action_spec(), wrong
        )

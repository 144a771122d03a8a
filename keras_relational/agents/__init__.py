"""Agents that learn by IMPALA, alone or with a teacher, on tf-agents.

Import its modules by name: they need the extra `rl`, and Keras on TensorFlow.
`vtrace` and `teacher` need Keras alone.

- `actor_learner`: `actor_learner` makes an `ActorLearner` of a model and a
  world. Each of its updates acts and learns in one compiled function.
- `training`: `train_agent` trains it in a run that can be killed and continued.
- `distributed`: `DistributedActorLearner`, with actors on many machines, by
  Ray.
- `agent`: `ImpalaAgent`, the loss and the update, a `TFAgent` of tf-agents.
- `vtrace`: `vtrace`, targets and advantages for actors that lag behind.
- `teacher`: `taught_logits` and `expert_log_probs`, for a world that knows
  expert actions.
- `checkpoints`: `AgentCheckpoints`, which `train_agent` writes.

Reference: [Espeholt et al., 2018](https://arxiv.org/abs/1802.01561).
"""

"""Environments for agents: BoxWorld, bridge BoxWorld, and a maze.

- `boxworld`: keys, locked boxes and a gem, with one path or with two.
- `goto_object_maze`: rooms with doors, and an object to go to.

The rules are pure functions of tensors, independent of any library for agents:

- `batched_world`: `World`, the base class of all worlds.
- `colours`: colours packed into integers.
- `compilation`: compiles the functions of a world.

Two modules wrap a world for a library. Import them by name. They need the extra
`rl`:

- `gymnasium_environment`: single and vectorized Gymnasium environments.
- `tf_agents_environment`: environments of tf-agents, of a world or of anybody's
  Gymnasium environments.

`registration` tells Gymnasium the names of the worlds.
"""

from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze
from keras_relational.environments.registration import register_worlds

__all__ = ["boxworld", "goto_object_maze"]

register_worlds()

"""Registers the worlds with Gymnasium.

Gymnasium does not search for plug-ins. It knows an id after a package has
registered it, so importing `keras_relational` registers the worlds. This
imports Gymnasium, which takes a tenth of a second. The module of the
environments is imported when the first environment is made.
"""

from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze

WORLDS = {
    "BoxWorld": boxworld.BoxWorld,
    "BridgeBoxWorld": boxworld.BridgeBoxWorld,
    "GotoObjectMaze": goto_object_maze.GotoObjectMaze,
}


def register_worlds() -> None:
    """Registers `keras_relational/NAME-v0` if Gymnasium is installed."""
    try:
        import gymnasium
    except ModuleNotFoundError:
        return
    module = "keras_relational.environments.gymnasium_environment"
    for name in WORLDS:
        env_id = f"keras_relational/{name}-v0"
        if env_id in gymnasium.registry:  # The package was loaded again.
            continue
        gymnasium.register(
            env_id,
            entry_point=f"{module}:WorldEnv",
            vector_entry_point=f"{module}:WorldVectorEnv",
            kwargs={"world": name},
        )

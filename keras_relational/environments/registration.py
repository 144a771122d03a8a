"""The worlds by name, and their names told to Gymnasium.

Gymnasium looks for no plug-ins: it knows an id once a package that registers it
has been imported, here the whole package. Importing Gymnasium as well costs it
a tenth of a second, beside seconds for Keras; what makes an environment is
imported when one is made.
"""

from keras_relational.environments import boxworld
from keras_relational.environments import goto_object_maze

WORLDS = {
    "BoxWorld": boxworld.BoxWorld,
    "BridgeBoxWorld": boxworld.BridgeBoxWorld,
    "GotoObjectMaze": goto_object_maze.GotoObjectMaze,
}


def register_worlds():
    """Registers `keras_relational/NAME-v0`, where Gymnasium is installed."""
    try:
        import gymnasium
    except ModuleNotFoundError:
        return
    module = "keras_relational.environments.gymnasium_environment"
    for name in WORLDS:
        env_id = f"keras_relational/{name}-v0"
        if env_id in gymnasium.registry:  # The package is loaded again.
            continue
        gymnasium.register(
            env_id,
            entry_point=f"{module}:WorldEnv",
            vector_entry_point=f"{module}:WorldVectorEnv",
            kwargs={"world": name},
        )

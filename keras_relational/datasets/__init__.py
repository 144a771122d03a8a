from keras_relational.datasets import adding
from keras_relational.datasets import bouncing_balls
from keras_relational.datasets import distribution_of_three
from keras_relational.datasets import dynamic_objects
from keras_relational.datasets import intuitive_physics
from keras_relational.datasets import relations_game
from keras_relational.datasets import single_ball
from keras_relational.datasets import vaec
from keras_relational.datasets import visual_analogies

__all__ = [
    "adding",
    "bouncing_balls",
    "distribution_of_three",
    "dynamic_objects",
    "intuitive_physics",
    "relations_game",
    "single_ball",
    "vaec",
    "visual_analogies",
]

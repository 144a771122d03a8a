"""`python -m experiments.scoff EXPERIMENT`."""

from experiments import command_line

# Each experiment, with the name of its runs.
command_line.choose(
    "experiments.scoff",
    {
        "added_objects": "added_objects",
        "adding": "adding",
        "adding_ablation": "adding_ablation",
        "ball_coordinates": "ball_coordinates",
        "bouncing_balls": "bouncing_balls",
        "find_objects": "find_objects",
        "follow_objects": "follow_objects",
        "single_ball": "single_ball",
        "intuitive_physics": "intuitive_physics",
        "maze": "goto_object_maze",
    },
)

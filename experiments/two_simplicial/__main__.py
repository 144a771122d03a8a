"""`python -m experiments.two_simplicial EXPERIMENT`."""

from experiments import command_line

# Each experiment, with the name of its runs.
command_line.choose(
    "experiments.two_simplicial",
    {
        "impala": "boxworld_impala",
        "teacher": "boxworld_teacher",
        "positions": "boxworld_positions",
        "play": "boxworld_play",
    },
)

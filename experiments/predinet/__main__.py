"""`python -m experiments.predinet EXPERIMENT`."""

from experiments import command_line

# Each experiment, with the name of its runs.
command_line.choose(
    "experiments.predinet",
    {
        "relations_game": "predinet_relations_game",
        "transfer": "predinet_transfer",
        "look_inside": "predinet_analysis",
    },
)

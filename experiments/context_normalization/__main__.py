"""`python -m experiments.context_normalization EXPERIMENT`."""

from experiments import command_line

# Each experiment, with the name of its runs.
command_line.choose(
    "experiments.context_normalization",
    {
        "vaec": "vaec",
        "visual_analogies": "visual_analogies",
        "dynamic_objects": "dynamic_objects",
    },
)

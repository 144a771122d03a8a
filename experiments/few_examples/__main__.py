"""`python -m experiments.few_examples`."""

from experiments import command_line
from experiments.few_examples import curves

command_line.start(curves, "few_examples")

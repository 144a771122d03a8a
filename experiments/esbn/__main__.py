"""`python -m experiments.esbn`."""

from experiments import command_line
from experiments.esbn import rules

command_line.start(rules, "esbn_rules")

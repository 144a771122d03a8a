"""Fixtures: small models with random weights, and images to look at."""

# ruff: noqa: F401
from random_models import game
from random_models import mha
from random_models import mlp
from random_models import multi_task_predinet
from random_models import predinet

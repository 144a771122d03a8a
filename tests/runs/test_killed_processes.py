import kill_runs
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("kind", kill_runs.KINDS)
def test_runs_that_are_killed(kind, tmp_path):
    """With SIGKILL, at random: `python tests/kill_runs.py` does it longer."""
    if kind == "agent":
        pytest.importorskip("tf_agents")
    assert kill_runs.kill_runs(kind, 4, 1, tmp_path) == []

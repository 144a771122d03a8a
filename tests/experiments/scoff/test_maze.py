import pytest

from experiments.scoff.maze import memory


@pytest.mark.parametrize("dynamics", ["lstm", "gru"])
def test_memories_of_mazes(dynamics):
    chosen = 8, 2, "separate", dynamics
    cell = memory("scoff", *chosen)
    assert (cell.units, cell.num_object_files, cell.num_schemata) == (8, 1, 2)
    assert (cell.schema_keys, cell.dynamics) == ("separate", dynamics)
    # Messages are added to the state, and nothing bounds that of a GRU.
    assert cell.num_message_heads == {"lstm": 4, "gru": 0}[dynamics]
    assert (
        cell.num_heads * cell.value_dim == {"lstm": 1024, "gru": 64}[dynamics]
    )
    assert memory("gru", *chosen).units == 8
    equal = memory("gru_of_equal_size", *chosen)
    cell.build((None, 256))
    equal.build((None, 256))
    assert equal.count_params() == pytest.approx(cell.count_params(), rel=0.05)


def test_other_memories_of_mazes_are_refused():
    for arguments, words in (
        ({"dynamics": "rnn"}, "'rnn'"),
        ({"schema_keys": "none"}, "'none'"),
        ({"num_schemata": 0}, "num_schemata=0"),
    ):
        with pytest.raises(ValueError, match=words):
            memory(**arguments)

"""The costs in the docstrings of layers, beside those of JAX' programs."""

import inspect
import math

import keras
import pytest

from benchmarks.stated_costs import costs
from keras_relational import layers

pytestmark = [
    pytest.mark.any_backend,
    pytest.mark.skipif(
        keras.backend.backend() != "jax", reason="JAX shows its programs"
    ),
]

BATCH = 4
N, V, M, TIME = 29, 6, 37, 31
ENTITIES = {"n": N, "m": M}
STEPS = {"time": TIME, "features": M}


def test_every_layer_states_its_cost():
    for name in layers.__all__:
        layer = getattr(layers, name)
        if inspect.isclass(layer) and issubclass(layer, keras.layers.Layer):
            assert "\n    Cost" in layer.__doc__, name


def case(make, shape, steps=1, **sizes):
    return pytest.param(make, shape, steps, sizes, id=make().name)


def over_steps(cell):
    return lambda: keras.layers.RNN(cell(), name=cell().name)


CASES = [
    case(lambda: layers.PrediNet(7, 5, 11), (N, M), **ENTITIES),
    case(
        lambda: layers.MultiHeadAttentionPooling(7, 11, 6), (N, M), **ENTITIES
    ),
    case(lambda: layers.CoRelNet(), (N, M), **ENTITIES),
    case(lambda: layers.InnerProductRelations(5, 7), (N, M), **ENTITIES),
    case(
        lambda: layers.RelationalConvolution(11, 3), (9, 9, 13), n=9, r=13, G=84
    ),
    case(lambda: layers.SlotAttention(7, 19, 23), (N, M), **ENTITIES, k=7),
    case(lambda: layers.RelationNetwork(9, 19), (N, M), **ENTITIES),
    case(lambda: layers.SymbolicAttention(13, num_heads=3), (N, 36), n=N, m=36),
    case(
        lambda: layers.RelationalTransformerBlock(3, 11, 23, 2),
        (N, M),
        **ENTITIES,
    ),
    case(
        lambda: layers.TwoSimplicialAttention(2, 10),
        (N, M),
        **ENTITIES,
        v=N,
        q=N,
    ),
    case(layers.TemporalContextNormalization, (TIME, M), **STEPS),
    case(layers.BatchContextNormalization, (TIME, M), **STEPS),
    case(lambda: layers.SlidingWindowNormalization(3), (TIME, M), **STEPS),
    case(lambda: layers.ESBN(19, 11), (TIME, M), **STEPS),
    case(
        over_steps(lambda: layers.NTMCell(19, 7, 13)), (TIME, M), TIME, **STEPS
    ),
    case(
        over_steps(lambda: layers.RelationalMemoryCell(24, 5, 4)),
        (TIME, M),
        TIME,
        **STEPS,
    ),
    case(
        over_steps(lambda: layers.LayerNormLSTMCell(19)),
        (TIME, M),
        TIME,
        **STEPS,
    ),
    case(lambda: layers.SlotPooling(4, 24), (40,), m=10),
    case(lambda: layers.RIMs(19, 3, 2), (TIME, M), TIME, n=1, m=M, g=4),
    case(lambda: layers.SCOFF(19, 3, 5), (TIME, M), TIME, n=1, q=1, m=M, g=3),
    case(
        lambda: layers.SCOFF(19, 3, 5, "lstm", position_dim=0),
        (TIME, 8, M),
        TIME,
        n=8,
        q=3,
        m=M,
        g=4,
    ),
]


@pytest.mark.parametrize(("make", "shape", "steps", "sizes"), CASES)
def test_cost(make, shape, steps, sizes):
    layer = make()
    multiplications, kept = measured(layer, shape)
    cell = getattr(layer, "cell", layer)
    stated = costs(cell, sizes)
    expected = stated.get("multiplications", 0) * steps
    assert multiplications == pytest.approx(expected, rel=0.05)
    if "numbers kept" in stated:
        assert kept == pytest.approx(stated["numbers kept"] * steps, rel=0.25)


@pytest.mark.parametrize("v", [3, 40])
def test_cost_of_two_simplicial_attention(v):
    layer = layers.TwoSimplicialAttention(2, 10)
    found, _ = measured(lambda x, y: layer(x, base=y), (N, M), (v, M), of=layer)
    stated = costs(layer, {"n": N, "m": M, "v": v, "q": min(v, N)})
    assert found == pytest.approx(stated["multiplications"], rel=0.05)


def test_cost_of_the_simplicial_block():
    block = layers.SimplicialTransformerBlock(3, 11, 2, 10, 23)
    sizes = {"n": N, "m": M, "v": V}
    attention = layers.TwoSimplicialAttention(2, 10)
    part = costs(attention, {**sizes, "q": V})["multiplications"]
    stated = costs(block, {**sizes, "S": part})
    found, kept = measured(block, (N, M), (V, M))
    assert found == pytest.approx(stated["multiplications"], rel=0.05)
    assert kept == pytest.approx(stated["numbers kept"], rel=0.25)


def test_cost_of_the_abstractor():
    sizes = {"n": N, "m": M, "s": 17}
    attention = layers.RelationalCrossAttention(3, 11)
    found, kept = measured(attention, (N, M), (N, 17))
    stated = costs(attention, sizes)
    assert found == pytest.approx(stated["multiplications"], rel=0.05)
    assert kept == pytest.approx(stated["numbers kept"], rel=0.25)
    abstractor = layers.Abstractor(3, 11, 23, num_layers=2)
    found, kept = measured(abstractor, (N, M), (N, 17))
    stated = costs(abstractor, {**sizes, "C": stated["multiplications"]})
    assert found == pytest.approx(stated["multiplications"], rel=0.05)
    assert kept == pytest.approx(stated["numbers kept"], rel=0.25)


def test_cost_of_soft_groups():
    layer = layers.SoftGroups(3)
    found, kept = measured(layer, (84, 37), (5, 9))
    stated = costs(layer, {"G": 84, "m": 37, "k": 5})
    assert found == pytest.approx(stated["multiplications"], rel=0.05)
    assert kept == pytest.approx(stated["numbers kept"], rel=0.25)


def test_cost_of_the_shared_workspace():
    layer = layers.SharedWorkspace(3)
    found, kept = measured(layer, (N, 36), (7, 33))
    stated = costs(layer, {"n": N, "m": 36, "k": 7, "u": 33})
    assert found == pytest.approx(stated["multiplications"], rel=0.05)
    assert kept == pytest.approx(stated["numbers kept"], rel=0.25)


def test_cost_of_dual_attention():
    sizes = {"n": N, "m": 36, "s": 17}
    relational = layers.RelationalAttention(2, 9, 3)
    dual = layers.DualAttention(2, 2, 3)
    found = measured(relational, (N, 36), (N, 17))
    found_beside = measured(dual, (N, 36), (N, 17))
    part = costs(relational, sizes)
    for index, (name, tolerance) in enumerate(
        [("multiplications", 0.05), ("numbers kept", 0.25)]
    ):
        assert found[index] == pytest.approx(part[name], rel=tolerance)
        whole = costs(dual, {**sizes, "R": part[name]})[name]
        assert found_beside[index] == pytest.approx(whole, rel=tolerance)


def measured(call, *shapes, of=None):
    """Multiplications in products of an example, and numbers for its gradient.

    Counted are products of matrices, and products of tensors that are summed
    right away. Without the weights, which also are kept.
    """
    import jax

    layer = of or call
    inputs = [jax.numpy.ones((BATCH, *shape)) for shape in shapes]
    call(*inputs)
    variables = layer.trainable_variables + layer.non_trainable_variables
    weights = [variable.value for variable in variables]

    def outputs(weights, *inputs):
        with keras.StatelessScope(zip(variables, weights, strict=True)):
            return jax.tree.leaves(call(*inputs))

    program = jax.make_jaxpr(outputs)(weights, *inputs).jaxpr
    backward = jax.eval_shape(
        lambda *args: jax.vjp(outputs, *args)[1], weights, *inputs
    )
    kept = sum(math.prod(x.shape) for x in jax.tree.leaves(backward))
    kept -= sum(
        math.prod(variable.shape) for variable in layer.trainable_variables
    )
    return products(program) / BATCH, kept / BATCH


def products(program):
    """The multiplications in products of a JAX program."""
    summed = {
        id(x)
        for step in program.eqns
        if step.primitive.name == "reduce_sum"
        for x in step.invars
    }
    count = 0
    for step in program.eqns:
        size = math.prod(step.outvars[0].aval.shape) if step.outvars else 0
        if step.primitive.name == "dot_general":
            (contracted, _), _ = step.params["dimension_numbers"]
            shape = step.invars[0].aval.shape
            count += size * math.prod(shape[axis] for axis in contracted)
        elif step.primitive.name == "mul" and id(step.outvars[0]) in summed:
            count += size
        repeats = step.params.get("length", 1)
        count += repeats * sum(products(part) for part in parts(step))
    return count


def parts(step):
    for value in keras.tree.flatten(list(step.params.values())):
        inner = getattr(value, "jaxpr", value)
        if hasattr(inner, "eqns"):
            yield inner

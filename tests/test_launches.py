"""What `make gpu` counts, of programs that are written out and compiled."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from benchmarks import launches
from benchmarks.gpu_programs import Program
from benchmarks.gpu_programs import size_of
from experiments.records import PUBLISHED
from keras_relational import layers

PROGRAM = """HloModule step

%sliced (p0: f32[5,8], p1: s32[]) -> f32[1,8] {
  %p0 = f32[5,8]{1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %row = f32[1,8]{1,0} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,8}
  ROOT %sum = f32[1,8]{1,0} add(%row, %row)
}

%set (p2: f32[5,8], p3: f32[1,8], p4: s32[]) -> f32[5,8] {
  %p2 = f32[5,8]{1,0} parameter(0)
  %p3 = f32[1,8]{1,0} parameter(1)
  %p4 = s32[] parameter(2)
  ROOT %all = f32[5,8]{1,0} dynamic-update-slice(%p2, %p3, %p4, %p4)
}

%body (state: (s32[], f32[5,8])) -> (s32[], f32[5,8]) {
  %state = (s32[], f32[5,8]{1,0}) parameter(0)
  %step = s32[] get-tuple-element(%state), index=0
  %rows = f32[5,8]{1,0} get-tuple-element(%state), index=1
  %read = f32[1,8]{1,0} fusion(%rows, %step), kind=kLoop, calls=%sliced
  %done = f32[5,8]{1,0} fusion(%rows, %read, %step), kind=kLoop, calls=%set
  ROOT %next = (s32[], f32[5,8]{1,0}) tuple(%step, %done)
}

ENTRY %main (x: f32[5,8], w: f32[8,8]) -> f32[5,8] {
  %x = f32[5,8]{1,0} parameter(0)
  %w = f32[8,8]{1,0} parameter(1)
  %start = s32[] constant(0)
  %product = (f32[5,8]{1,0}, s8[4096]{0}) custom-call(%x, %w), CALL
  %y = f32[5,8]{1,0} get-tuple-element(%product), index=0
  %first = (s32[], f32[5,8]{1,0}) tuple(%start, %y)
  %loop = (s32[], f32[5,8]{1,0}) while(%first), body=%body, TRIPS
  ROOT %out = f32[5,8]{1,0} get-tuple-element(%loop), index=1
}
"""
CALL = 'custom_call_target="__cublas$gemm"'
TRIPS = 'backend_config={"known_trip_count":{"n":"5"}}'


def program(call=CALL, trips=TRIPS):
    return Program(PROGRAM.replace("CALL", call).replace("TRIPS", trips))


def test_loops_are_counted_as_often_as_they_run():
    found = program()
    assert found.launches == {"cublas$gemm": 1, "fusion": 2 * 5}
    assert not found.errors
    row, index = 8 * 4, 4
    # Of the array, a step reads one row, and sets one.
    step = (2 * row + index) + (2 * row + index)
    assert found.bytes_moved == 4 * (5 * 8 + 8 * 8 + 5 * 8) + 5 * step


def test_what_runs_beside_other_kernels_is_counted():
    """A fusion that is started, and awaited later."""
    text = PROGRAM.replace("CALL", CALL).replace("TRIPS", TRIPS)
    started = text.replace(
        "%done = f32[5,8]{1,0} fusion(",
        "%done = ((f32[5,8]{1,0}), f32[5,8]{1,0}) fusion-start(",
    )
    found, expected = Program(started), Program(text)
    assert started != text
    assert found.launches == expected.launches
    assert found.bytes_moved == expected.bytes_moved


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"trips": "x"}, "has a loop of unknown length"),
        (
            {"call": 'custom_call_target="xla_ffi_python_gpu_callback"'},
            "calls the host (xla_ffi_python_gpu_callback)",
        ),
        (
            {"call": 'custom_call_target="lapack_sgetrf_ffi"'},
            "calls what only a CPU has (lapack_sgetrf_ffi)",
        ),
    ],
)
def test_what_a_gpu_would_wait_for_is_an_error(changed, error):
    assert program(**changed).errors == {error}


def test_float64_is_an_error():
    text = PROGRAM.replace("f32[8,8]", "f64[8,8]").replace("CALL", CALL)
    assert "computes in float64" in Program(text.replace("TRIPS", TRIPS)).errors


def test_sizes_of_types():
    assert size_of("(f32[4,2]{0,1}, s8[4194304]{0}, pred[3], bf16[])") == 37


def test_every_layer_is_compiled():
    named = {part for name in launches.LAYERS for part in name.split(", ")}
    others = {"NORMALIZATIONS", "normalization", "EpisodicRNN"}
    assert set(layers.__all__) - named == others


def test_the_published_counts_have_every_subject():
    rows = json.loads((PUBLISHED / "launches.json").read_text())["rows"]
    found = {(row["subject"], row["policy"]) for row in rows}
    assert found == {
        (subject, policy)
        for subject in launches.SUBJECTS
        for policy in launches.POLICIES
    }
    assert not any(row["errors"] for row in rows)


@pytest.mark.slow
def test_a_step_is_compiled_and_timed_here(tmp_path):
    command = ["-m", "benchmarks.launches", "--here", "CoRelNet", "--write"]
    subprocess.run(
        [sys.executable, *command, tmp_path / "found.json"],
        env={**os.environ, "KERAS_BACKEND": "jax", "XLA_FLAGS": ""},
        check=True,
    )
    found = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [row["policy"] for row in found] == list(launches.POLICIES)
    for row in found:
        # 32 sets of 9 entities with 128 features: all dot products.
        assert row["forward"]["operations"] == 2 * 32 * 9 * 9 * 128
        assert row["training"]["seconds"] > 0


@pytest.mark.skipif(
    not importlib.util.find_spec("jax_plugins")
    or not importlib.util.find_spec("jax_plugins.xla_cuda13"),
    reason="The compiler for GPUs is in the environment of `make gpu`",
)
def test_programs_that_a_gpu_would_wait_for():
    import jax
    import numpy as np

    def on_the_host(x):
        return jax.pure_callback(np.sin, x, x)

    def of_unknown_length(x):
        return jax.lax.while_loop(lambda x: x.sum() < 9, lambda x: 2 * x, x)

    x = np.ones(5, "float32")
    with pytest.raises(RuntimeError, match="'gpu' requested"):
        launches.compile_step(on_the_host, (x,), here=False)
    _, compiled = launches.compile_step(of_unknown_length, (x,), here=False)
    errors = Program(compiled.as_text()).errors
    assert errors == {"has a loop of unknown length"}
    row = launches.counts("CoRelNet", "float32")
    assert 0 < row["forward"]["launches"] < row["training"]["launches"] < 20
    assert not row["errors"]

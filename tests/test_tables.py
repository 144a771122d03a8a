"""The papers' tables, made from small records of runs.

The tables of all published runs are compared with their pages, cell by cell, in
`test_results.py`. Here are runs that nobody has published.
"""

import re

import numpy as np
import pytest

from experiments import records
from experiments import tables
from experiments.predinet import results as predinet
from experiments.records import Record


def record(experiment, result, curves=(), data=None, **arguments):
    """A finished run; a second one of these arguments has the same name."""
    options = "-".join(f"{k}{v}" for k, v in sorted(arguments.items()))
    return Record(
        f"{experiment}-{options}",
        {
            "experiment": experiment,
            "arguments": {"seed": 0, "directory": "runs", **arguments},
            "data": data or {},
        },
        result,
        dict(curves),
    )


def all_tables(records):
    """The tables without what marks the best and the shades."""
    return {
        name: re.sub(r"</?span[^>]*>|\*\*", "", text)
        for name, text in tables.all_tables(records).items()
    }


def relations_game(table, result, data=None, **arguments):
    lines = table.splitlines()
    return record(
        "predinet_relations_game",
        {"minutes": 1.5, "batches": int(lines[-1].split(",")[0]), **result},
        {"curves.csv": table},
        data,
        **{
            "task": "same",
            "central": "predinet",
            "optimizer": "sgd",
            "num_heads": 32,
            "num_relations": 16,
            **arguments,
        },
    )


def test_the_best_figure_is_bold_and_the_better_are_darker():
    rows = [
        {"network": "a", "seeds": 3, "test": "50.0", "error": "0.1 ± 0.1"},
        {"network": "b", "seeds": 3, "test": "75.0", "error": "0.0100"},
        {"network": "b, paper", "seeds": 3, "test": "100", "error": "0.001"},
    ]
    lines = records.table(rows, "task=same", ["test"]).splitlines()
    assert lines[0] == "All rows: seeds 3; task=same."
    assert lines[4:6] == [
        "| a | 50.0 | 0.1 ± 0.1 |",
        '| b | <span class="shade-3">**75.0**</span> | 0.0100 |',
    ]
    errors = records.table(rows, "", ["error"], smaller=True).splitlines()
    assert "0.1 ± 0.1 |" in errors[4]
    assert errors[5] == "| b | 75.0 | **0.0100** |"
    assert '<span class="shade-6">0.001</span>' in errors[6]


def test_predinet_beyond_table_1():
    """Any task may be trained, also one without a figure of the paper."""
    curves = "batches,hexominoes_accuracy\n1000,0.5\n2000,0.75\n"
    runs = [
        relations_game(curves, {"hexominoes": 0.75}, task=task)
        for task in ("match_rows", "same")
    ]
    lines = all_tables(runs)["predinet_single"].splitlines()
    assert lines[0] == (
        "All rows: objects hexominoes; module predinet; batches 2,000; "
        "seeds 0; minutes 1.5; num_heads=32, num_relations=16, optimizer=sgd."
    )
    same, match_rows = lines[4:]
    assert same == "| same | 75.0 | 62.5 † | 76.5 | 100 |"
    assert match_rows == "| match_rows | 75.0 | 62.5 † | 76.5 |  |"


def test_the_best_of_few_images_are_lucky():
    best = predinet.ten_best_of_few_images
    # The ten largest of 200 normal numbers are 2.06 deviations above the mean.
    for share in (0.5, 0.9):
        lucky = share + 2.06 * (share * (1 - share) / 250) ** 0.5
        for length in (1, 100):
            found = best(np.full(length, share))
            assert found == pytest.approx(lucky, abs=3e-3)
    assert best(np.ones(20)) == 1
    # Half of the points are at 0.9, as if there were only these.
    late = best(np.repeat([0.1, 0.9], 50))
    assert best(np.full(50, 0.9)) - 0.01 < late < best(np.full(50, 0.9))


def test_predinet_on_published_images():
    """Two sets of images are two rows, wherever their files lie."""
    curves = "batches,published_accuracy\n1000,0.5\n"
    runs = [
        relations_game(
            *(curves, {"published": share}, {"published": digest}),
            num_train=9,
            published=path,
            seed=seed,
        )
        for path, digest, share, seed in (
            ("here.npz", "0a1b2c3d", 0.5, 0),
            ("there.npz", "0a1b2c3d", 0.7, 1),
            ("here.npz", "4e5f6071", 0.5, 0),
        )
    ]
    text = all_tables(runs)["predinet_single"]
    assert "num_train=9" in text
    for row in (
        "| published 0a1b2c3d | 0, 1 | 60.0 ± 14.1 |",
        "| published 4e5f6071 | 0 | 50.0 |",
    ):
        assert row in text


def test_predinet_of_another_length():
    """Is not averaged; nor is one run counted twice."""
    short = "batches,hexominoes_accuracy,published_accuracy\n1000,0.5,0.25\n"
    long = "batches,hexominoes_accuracy\n2000,0.5\n"
    result = {"hexominoes": 0.5, "published": 0.25}
    runs = [
        relations_game(curves, result, seed=seed)
        for seed, curves in enumerate((short, long))
    ]
    text = all_tables(runs)["predinet_single"]
    assert "| hexominoes | 1,000 | 0 |" in text
    assert "| hexominoes | 2,000 | 1 |" in text
    again = relations_game(short, result, seed=0)
    with pytest.raises(ValueError, match=f"two runs .*{again.name}"):
        all_tables([*runs, again])


def test_transfer():
    def run(target, minutes, stripes, **arguments):
        curves = f"batches,minutes\n5000,{minutes / 2}\n10000,{minutes}\n"
        return record(
            "predinet_transfer",
            {"batches": 10_000, "stripes": stripes},
            {f"stage_{stage}/curves.csv": curves for stage in (2, 3)},
            curriculum=["between"],
            target=target,
            central="mlp1",
            **arguments,
        )

    columns = ["column_ABA", "column_AAB", "column_ABB"]
    tables = all_tables(
        [
            run(columns, 2, {"2": 0.75, "3": 0.5}, stages=[1, 2, 3, 4]),
            # One that was asked for stage 3 alone is of the same kind.
            run(columns, 4, {"3": 0.7}, stages=[3], seed=1),
            run(["match_rows"], 5, {"3": 0.5}, stages=[3]),
        ]
    )
    assert (
        "| between | column ABA, AAB, ABB | mlp1 | 10,000 | 0, 1 | 75.0 | "
        "60.0 ± 14.1 | 12 |"
    ) in tables["predinet_transfer"]
    assert (
        "| between | match_rows | mlp1 | 10,000 | 0 | 50.0 | 10 |"
        in tables["predinet_other_transfers"]
    )


def test_boxworld_with_a_teacher_that_goes():
    players = {
        "greedy": {"solved": 0.985, "length": 23.5},
        "sampled": {"solved": 0.999, "length": 22.71},
        "random": {"solved": 0.055, "length": 81.45},
        "teacher": {"solved": 1.0, "length": 21.64},
    }
    run = record(
        "boxworld_teacher",
        {"steps": 900_000, "minutes": 9.5, **players},
        **{"world": "box", "network": "relational", "batch_size": 64},
        **{"teacher_share": 1.0, "teacher_moves": 0.9, "num_taught": 4_000},
        **{"curriculum": False, "num_distractors": [0, 4]},
        **{"rows": 3, "columns": 18, "solution_length": [1, 2]},
    )
    assert (
        "| 3 by 18, 1 to 2 boxes, 0 to 4 branches | relational "
        "| 0.9 of the moves, falling for 4,000 steps | 0 "
        "| 0.9 | 9.5 | 99.9 % | 98.5 % | 5.5 % | 22.7 | 21.6 |"
    ) in all_tables([run])["boxworld_teacher_3_by_18"]


def balls(core, seed, error, **more):
    result = {"batches": 1000, "minutes": 60.0, "error_10": error}
    return record(
        "bouncing_balls",
        {**result, "error_30": 2 * error, **more.pop("result", {})},
        task="4balls",
        core=core,
        num_schemata=4,
        seed=seed,
        **more,
    )


def test_errors_beside_a_gru_that_was_trained_alike():
    tables = all_tables(
        [
            balls("gru", 0, 0.04),
            balls("gru", 1, 0.04),
            balls("rims", 2, 0.01),
            balls("rims", 0, 0.03, batch_size=16),
            balls("gru", 0, 0.06, batch_size=16),
            record("of_a_user", {"batches": 1, "minutes": 1.0}),
        ]
    )
    assert list(tables) == ["bouncing_balls"]
    for row in (
        "| gru |  | 0, 1 | 0.0400 ± 0.0000 |",
        # No GRU of that seed.
        "| rims |  | 2 | 0.0100 | 0.0200 |  |  |",
        "| rims | batch_size=16 | 0 | 0.0300 | 0.0600 | 0.50 | 0.50 |",
    ):
        assert row in tables["bouncing_balls"]


def maze(seed, steps, share, size=6, **later):
    players = f"sampled_{size}", f"random_{size}", "sampled_10", "random_10"
    played = {"solved": share, "length": 9.0}
    return record(
        "goto_object_maze",
        {
            "parameters": 12345,
            "steps": steps,
            "minutes": 45.0,
            **dict.fromkeys(players, played),
        },
        core="gru_of_equal_size",
        seed=seed,
        **later,
    )


def test_options_at_their_defaults_are_as_if_not_given():
    later = {"num_schemata": 4, "schema_keys": "shared", "dynamics": "lstm"}
    runs = [maze(0, 1_000_234, 0.25), maze(1, 1_000_301, 0.75, **later)]
    assert (
        "| gru_of_equal_size | 4 LSTMs, shared keys | 1.0 | 0, 1 | 45.0 | "
        "12,345 | 50.0 ± 35.4 | 50.0 | 50.0 ± 35.4 | 50.0 | 74 |"
    ) in all_tables(runs)["maze"]


def test_mazes_of_another_size_have_a_table():
    of_four = {"num_schemata": 1, "schema_keys": "separate", "dynamics": "gru"}
    small = maze(0, 4_000_000, 0.25, 4, room_size=4, **of_four)
    found = all_tables([small, maze(0, 1_000_234, 0.5)])
    of_small = found["small_mazes"]
    assert "solved, 4 by 4 | random, 4 by 4 | solved, 10" in of_small
    assert "1 GRU, separate keys | 4.0 | 0 |" in of_small
    assert "solved, 6 by 6 | random, 6 by 6 | solved, 10" in found["maze"]


def test_one_run_is_not_two_seeds():
    run = balls("gru", 0, 0.02)
    longer = balls("gru", 0, 0.02, result={"batches": 2000})
    text = all_tables([run, longer])["bouncing_balls"]
    assert "| 2,000 | 0.0200 |" in text
    with pytest.raises(ValueError, match=f"two runs .*{run.name}"):
        all_tables([run, longer, balls("gru", 0, 0.03)])


def test_extrapolation():
    """The autoencoder of moving squares has a folder, but no error."""
    result = {"batches": 20_000, "minutes": 1.0, "errors": [0.005, 0.007]}

    def dynamic(normalization, result=result, **options):
        options["normalization"] = normalization
        return record("dynamic_objects", result, **options)

    text = all_tables(
        [
            dynamic("temporal_context"),
            dynamic(["batch_training_statistics"]),
            dynamic("batch", num_train=500),
            dynamic(None, {"batches": 25_000, "minutes": 22.4}),
        ]
    )["dynamic_objects"]
    for row in (
        "| temporal_context |  | 0.0060 | 0.0056 |",
        "| batch_training_statistics |  | 0.0060 | 0.0507 |",
        "| batch | num_train=500 | 0.0060 |",
    ):
        assert row in text
    assert "batches 20,000" in text


def test_extrapolation_on_published_files():
    """The digest of the files is in the name of the table."""
    data = {"published": "0a1b2c3d"}
    settings = {"normalization": "batch", "image_size": 128}
    shares = [{"all": 0.6 / region} for region in range(1, 7)]
    result = {"batches": 500, "minutes": 2.0, "test": 0.25}
    tables = all_tables(
        [
            record(
                *("vaec", {**result, "regions": shares}, (), data),
                regime="scale",
                **settings,
            ),
            record(
                *("visual_analogies", result, (), data),
                candidates="contrasting",
                **settings,
            ),
        ]
    )
    row = "| batch | 500 | 0 | 60.0 | 30.0 | 20.0 | 15.0 | 12.0 | 10.0 | 17.4 |"
    assert row in tables["vaec_scale_128_published_0a1b2c3d"]
    row = "| batch | 500 | 0 | 25.0 | 66.1 |"
    assert row in tables["visual_analogies_published_0a1b2c3d_128"]

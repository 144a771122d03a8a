"""`python -m fuzz`: attacks, a report, and 1 as exit code on any finding."""

import argparse
import json
import pathlib
import sys

PARTS = ("requests", "files", "rollover", "layers", "exports")


def main():
    parser = argparse.ArgumentParser(
        prog="python -m fuzz",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rollover-requests", type=int, default=1_000)
    parser.add_argument("--layers", type=int, default=10_000)
    parser.add_argument("--exports", type=int, default=200)
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    parser.add_argument(
        "--patience",
        type=float,
        default=5.0,
        help="seconds until an answer, or a file, counts as hanging",
    )
    parser.add_argument("--output", help="path for the report as JSON")
    parser.add_argument(
        "--replay",
        nargs=2,
        metavar=("CLASS", "INDEX"),
        help="make this one attack again, and say what comes of it",
    )
    args = parser.parse_args()
    # The rest imports TensorFlow, for which --help need not wait.
    from fuzz import exports
    from fuzz import files
    from fuzz import layers
    from fuzz import requests
    from fuzz import rollover
    from fuzz.report import Report

    if args.replay:
        kind, index = args.replay[0], int(args.replay[1])
        part = requests if kind in requests.ATTACKS else files
        if kind not in part.ATTACKS:
            known = ", ".join((*requests.ATTACKS, *files.ATTACKS))
            parser.error(f"no class {kind!r}. Expected one of: {known}")
        outcome, problem = part.replay(args.seed, kind, index, args.patience)
        print(f"{kind} {index}: {outcome}; {problem or 'as it should be'}")
        sys.exit(1 if problem else 0)
    report = Report(args.seed)
    if args.only in (None, "requests"):
        requests.run(report, args.requests, args.patience)
    if args.only in (None, "files"):
        files.run(report, args.files, args.patience)
    if args.only in (None, "rollover"):
        rollover.run(report, args.rollover_requests, args.patience)
    if args.only in (None, "layers"):
        layers.run(report, args.layers)
    if args.only in (None, "exports"):
        exports.run(report, args.exports)
    report.print()
    if args.output:
        content = json.dumps(report.as_dict(), indent=1)
        pathlib.Path(args.output).write_text(content + "\n")
    sys.exit(1 if report.findings else 0)


if __name__ == "__main__":
    main()

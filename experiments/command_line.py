"""The options, errors and last lines of the experiments' commands.

An experiment is a module with a function `main`, which takes a `Command`, an
`argparse.ArgumentParser` that also opens and finishes the run. The `__main__`
of a paper starts it, by `choose` or `start`. Every help text describes its
option; the default is added to it. A bad value ends in one line and exit
status 2, Ctrl-C in one line and exit status 130. `python -X dev` shows the
traceback of an error.
"""

import argparse
import glob
import importlib
import pathlib
import shlex
import sys

from experiments.records import MACHINE_OPTIONS
from keras_relational import runs

MAX_LISTED = 8  # Files of learning curves; more are named by a pattern.


def choose(package, experiments):
    """Runs the experiment that the first word of the command names.

    `experiments` maps modules of the paper's package to names of runs.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {package}")
    parser.add_argument("experiment", choices=experiments)
    name = parser.parse_args(sys.argv[1:2]).experiment
    module = importlib.import_module(f"{package}.{name}")
    start(module, experiments[name], f"{package} {name}", sys.argv[2:])


def start(module, experiment, program=None, options=None):
    """Runs an experiment's module. An error or Ctrl-C becomes one line.

    `experiment` is the name of its runs. `program` follows `python -m`, by
    default the module's package, and `options` are the words after it.
    """
    program = f"python -m {program or module.__package__}"
    command = Command(experiment, program, options, module.__doc__)
    try:
        module.main(command)
    except KeyboardInterrupt:
        command.exit(130, command.stopped())
    except (OSError, RuntimeError, ValueError) as error:
        if sys.flags.dev_mode or not _is_for_the_user(error):
            raise
        command.error(str(error))


class Command(argparse.ArgumentParser):
    """The command line of an experiment, and its run.

    Runs begin with the name `experiment`. `options` are words, by default
    those of the process.
    """

    def __init__(self, experiment, program, options, description):
        self.experiment = experiment
        self.options = options
        super().__init__(
            prog=program,
            description=description,
            formatter_class=_WithDefaults,
        )
        self.args = None
        self.run = None

    def parse_args(self, args=None, namespace=None):
        options = self.options if args is None else args
        return super().parse_args(options, namespace)

    def option(self, name, kind, default, help, low=1, **arguments):
        """Adds an option.

        `kind` is `int` for an integer that is `low` or more, `float` for a
        number above 0, `bool` for a flag, a sequence of the values to choose
        from, or another function from text to the value.
        """
        if kind is bool:
            arguments["action"] = "store_true"
        elif callable(kind):
            checked = {int: integer_from(low), float: positive_float}
            arguments["type"] = checked.get(kind, kind)
        else:
            arguments |= {"choices": kind, "type": type(next(iter(kind)))}
        self.add_argument(name, default=default, help=help, **arguments)

    def parse_run(self, export=None):
        """Adds the options of every run, and `--export` with that help text."""
        add = self.add_argument_group("options of every run").add_argument
        seed = "fixes data, initial weights and order"
        add("--seed", type=integer_from(0), default=0, help=seed)
        parent = "folder in which the run gets a folder of its own"
        add("--directory", type=folder, default="runs", help=parent)
        bar = "0, or 1 to show the progress"
        add("--verbose", type=int, choices=(0, 1), default=1, help=bar)
        if export is not None:
            target = {"type": pathlib.Path, "metavar": "FOLDER"}
            add("--export", help=f"folder for {export}", **target)
        self.args = self.parse_args()
        runs.check_export(getattr(self.args, "export", None))
        return self.args

    def open_run(
        self, always=(), may_differ=(), data=None, name=None, **values
    ):
        """Makes the `runs.Run` of this command, to be used by `with`.

        The same command continues it, and other options make another run.
        Options in `always` stand in each name of a run, those in `may_differ`
        may differ when it goes on. `data` has digests of the files that were
        read, `name` begins the run's name in place of the experiment, and
        `values` replace options.
        """
        arguments = {**vars(self.args), **values}
        may_differ = (*may_differ, *MACHINE_OPTIONS)
        defaults = {option: self.get_default(option) for option in arguments}
        folder = runs.run_name(
            name or self.experiment,
            arguments,
            defaults,
            always=always,
            leave_out=may_differ,
            data=data,
        )
        self.run = runs.Run(
            self.args.directory / folder,
            self.experiment,
            arguments,
            may_differ=may_differ,
            data=data,
        )
        return self.run

    def finish(self, run, model, metrics, lines, next_command, exported=None):
        """Saves the model and the result, exports if asked to, and says so.

        `lines` have places for the metrics, as in `"accuracy {test:.1%}"`.
        `exported` is the model for `--export`, if it is another one.
        """
        if model is not None:
            run.save_model(model)
        result = {**run.finish(metrics), **metrics}
        print(f"\n{run.name} has finished.")
        if isinstance(result.get("minutes"), float):
            print(f"  trained for {result['minutes']} minutes")
        for line in lines:
            print(f"  {line.format(**result)}")
        print(f"It is in {run.directory}. Look at:")
        for file in sorted(run.directory.glob("*")):
            if file.suffix in (".png", ".gif"):
                print(f"  {file}")
        curves = sorted(run.directory.glob("**/curves.csv"))
        if len(curves) > MAX_LISTED:
            curves = [run.directory / "*" / "curves.csv"]
        for file in curves:
            print(f"  {file}: the learning curves")
        if (run.directory / "tensorboard").is_dir():
            folder = shlex.quote(str(run.directory))
            print(f"  in a browser: tensorboard --logdir {folder}")
        if getattr(self.args, "export", None):
            from keras_relational import serving

            path = serving.export_model(exported or model, self.args.export)
            print(f"The model is exported to {path}. To serve it:")
            folder = shlex.quote(str(self.args.export))
            print(f"  python -m keras_relational.serving --model-dir {folder}")
        print(f"Next: {next_command}")

    def stopped(self):
        """The line after Ctrl-C, with the command that goes on."""
        options = sys.argv[1:] if self.options is None else self.options
        same = f"{self.prog} {shlex.join(options)}"
        if self.run is None or self.run.config is None:
            return f"\nStopped. To start again: {same}\n"
        return (
            f"\nStopped. The same command goes on from the last whole epoch in "
            f"{self.run.directory}: {same}\n"
        )

    def error(self, message):
        message = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {message} (see --help)\n")


def integer_from(low):
    """The type of an option: an integer that is `low` or more."""

    def integer(text):
        value = int(text)
        if value < low:
            raise argparse.ArgumentTypeError(
                f"must be {low} or more, and is {value}"
            )
        return value

    return integer


def number(text):
    """The type of an option: a number that is 0 or more."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be 0 or more, and is {text}")
    return value


def positive_float(text):
    """The type of an option: a number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be above 0, and is {text}")
    return value


def existing_file(text):
    """The type of an option: the path of a file to read."""
    path = pathlib.Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path


def existing_folder(text):
    """The type of an option: the path of a folder to read."""
    path = pathlib.Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path


def file_pattern(text):
    """The type of an option: a pattern such as `'folder/*.npz'`."""
    if not glob.glob(text):
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return pathlib.Path(text)


def folder(text):
    """The type of an option: the path of a folder to write to."""
    path = pathlib.Path(text)
    for parent in (path, *path.parents):
        if parent.exists() and not parent.is_dir():
            raise argparse.ArgumentTypeError(f"{parent} is a file, no folder")
    return path


class _WithDefaults(argparse.RawDescriptionHelpFormatter):
    """Adds the default to each help text that does not tell it."""

    def _get_help_string(self, action):
        if action.default == argparse.SUPPRESS or "default" in action.help:
            return action.help
        default = action.default
        if default is None:
            default = "none"
        elif isinstance(default, bool):
            default = "on" if default else "off"
        elif isinstance(default, list | tuple):
            default = " ".join(map(str, default))
        return f"{action.help} (default: {default})"


def _is_for_the_user(error):
    """Tells an error that the project raised from one deeper down, a bug."""
    if isinstance(error, OSError):
        return True
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "")
    return module.startswith(("keras_relational.", "experiments."))

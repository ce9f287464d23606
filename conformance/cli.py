"""The command line: parses, calls, prints. ``gguf-conformance --help`` is the manual."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any, cast

import click

from conformance import __version__
from conformance.errors import EXIT_DIVERGENCE, EXIT_HARNESS, EXIT_OK, GgufConformanceError, UsageError
from conformance.interrupts import EXIT_INTERRUPTED, interruptible
from conformance.streams import sound_streams

PROFILES = ("llama.cpp", "gguf-py", "spec")
DEFAULT_REPORTS = Path("reports")
TRACEBACK_VARIABLE = "GGUF_CONFORMANCE_TRACEBACK"


class _Group(click.Group):
    """Shows commands in the order in which a user meets them."""

    # Whether the process is this command's: the entry point gives no arguments, who calls from a program of his own does.
    alone = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order of their declaration."""
        del ctx
        return list(self.commands)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run as click does, with streams that may break."""
        self.alone = not args and not kwargs
        try:
            with sound_streams():
                return super().main(*args, **kwargs)
        except GgufConformanceError as problem:
            click.echo(f"gguf-conformance: {problem}", err=True)
            sys.exit(problem.exit_code)


def _one_screen(function: Callable[..., int | None]) -> Callable[..., None]:
    """Turn an error that is meant for the user into its message and exit code, and the result into the exit code."""

    @wraps(function)
    def wrapper(*args: object, **kwargs: object) -> None:
        try:
            with interruptible(for_good=main.alone):
                code = function(*args, **kwargs)
        except KeyboardInterrupt:
            click.echo("gguf-conformance: interrupted", err=True)
            code = EXIT_INTERRUPTED
        except GgufConformanceError as problem:
            click.echo(f"gguf-conformance: {problem}", err=True)
            code = problem.exit_code
        except Exception as problem:  # a fault of ours: one line, the rest for who asks
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            click.echo(f"gguf-conformance: internal error: {type(problem).__name__}: {problem}", err=True)
            click.echo(
                f"  this is a fault of the harness; run again with {TRACEBACK_VARIABLE}=1 and report what it prints", err=True
            )
            code = EXIT_HARNESS
        sys.exit(code or EXIT_OK)

    return wrapper


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="gguf-conformance")
def main() -> None:
    """Tell where an implementation of GGUF and ggml's quantized blocks departs from llama.cpp.

    \b
    Start here:
      gguf-conformance run --subject impl                  the reference, judged by what is installed
      gguf-conformance run --subject path/to/my-adapter    your own implementation (docs/protocol.md)
      gguf-conformance explain container/alignment/0    one case, and what everybody answers

    \b
    Exit codes: 0 as expected; 1 a divergence, a stale known divergence, or drift of an authority;
    2 usage; 3 harness or configuration; 4 an authority is missing; 130 interrupted.

    \b
    Completion in bash (zsh_source and fish_source likewise):
      eval "$(_GGUF_CONFORMANCE_COMPLETE=bash_source gguf-conformance)"
    """


def _complete_case(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete ids of cases; without cases there is nothing to offer."""
    from conformance.cases.load import load_suites
    from conformance.places import cases_root

    try:
        cases = load_suites(cast("Path | None", ctx.params.get("cases")) or cases_root())
    except GgufConformanceError:
        return []
    return [case.id for case in cases if case.id.startswith(incomplete)]


def _complete_subject(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of subjects."""
    from conformance.subjects.manifest import known_names

    return [name for name in known_names() if name.startswith(incomplete)]


_cases = click.option(
    "--cases", type=click.Path(path_type=Path, file_okay=False, exists=True), help="A folder of cases of your own."
)
_select = click.option(
    "--select", "-s", multiple=True, metavar="PATTERN", shell_complete=_complete_case,
    help="Only these cases: 'container/**', 'blocks/q8_0/*'; '!PATTERN' takes away. May be given several times.",
)  # fmt: skip
_color = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours; NO_COLOR counts too."
)
_profile = click.option("--profile", type=click.Choice(PROFILES), help="Who judges; the subject's manifest says otherwise.")
_oracle = click.option(
    "--oracle", type=click.Choice(["live", "golden"]),
    help="live: ask the installed authorities too. golden: recorded answers. Default: live where llama.cpp is installed.",
)  # fmt: skip
_judges_only = click.option(
    "--judges-only", is_flag=True, help="In a live run, ask only the authorities that judge: gguf-py takes most of the time."
)
_by_type = click.option("--by-type", is_flag=True, help="Show blocks compared by ggml type and op, not suites and verdicts.")
_json = click.option("--json", "as_json", is_flag=True, help="For a machine.")


@main.command()
@click.option("--subject", "-S", "subjects", multiple=True, required=True, metavar="NAME|PATH", shell_complete=_complete_subject,
              help="An adapter: its name, its folder, or its manifest. May be given several times.")  # fmt: skip
@_select
@_oracle
@_profile
@_cases
@click.option("--jobs", "-j", type=click.IntRange(1), help="Lanes of processes; default: as many as cores.")
@click.option(
    "--report", "folder", type=click.Path(path_type=Path, file_okay=False), help="Where the reports go; default: reports/<time>."
)
@click.option("--no-report", is_flag=True, help="Write no reports, only the terminal's.")
@click.option("--validate", is_flag=True, help="Check each message against the protocol's JSON Schema.")
@_judges_only
@click.option("--update-known", "update", is_flag=True,
              help="Write what a live run shows into each subject's divergences.yaml, for you to explain.")  # fmt: skip
@_by_type
@_color
@_one_screen
def run(folder: Path | None, no_report: bool, by_type: bool, update: bool, color: str, **options: Any) -> int:
    """Run cases against subjects and judge the answers.

    \b
    Examples:
      gguf-conformance run --subject impl --oracle live
      gguf-conformance run -S impl -s 'blocks/q8_0/**' --no-report
      gguf-conformance run -S ./my-adapter --profile gguf-py --report out
      gguf-conformance run -S ./my-adapter --oracle live --update-known
    """
    from conformance.commands import run_command
    from conformance.run.setup import Options

    _expect_subjects()
    target = None if no_report else folder or _default_folder()
    options["subjects"] = tuple(options["subjects"])
    options["select"] = tuple(options["select"])
    return run_command(Options(**options), target, color, by_type=by_type, fresh=folder is None, update=update)


def _expect_subjects() -> None:
    """Prepare the process for what subjects, and their builds, may leave behind, if it is ours."""
    from conformance.subjects.guard import GUARD

    if main.alone:
        GUARD.own_process()


def _default_folder() -> Path:
    return DEFAULT_REPORTS / datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")


@main.command()
@click.option("--subject", "-S", "subjects", multiple=True, required=True, metavar="NAME|PATH", shell_complete=_complete_subject,
              help="An adapter: its name, its folder, or its manifest. May be given several times.")  # fmt: skip
@click.option("--type", "-t", "types", multiple=True, metavar="TYPE", help="Only this type (Q4_K). May be given several times.")
@click.option("--blocks", default=20_000, type=click.IntRange(1, 10**9), show_default=True,
              help="How many blocks of each type and op; a twentieth where a quantizer searches a grid.")  # fmt: skip
@click.option("--seed", default=1, type=click.IntRange(0, 2**32 - 1), show_default=True, help="Another seed, other numbers.")
@_profile
@click.option("--jobs", "-j", type=click.IntRange(1), help="Lanes of processes; default: as many as cores.")
@click.option(
    "--report",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where cases and reports go; default: reports/<time>.",
)
@_color
@_one_screen
def sweep(folder: Path | None, types: tuple[str, ...], blocks: int, seed: int, color: str, **options: Any) -> int:
    """Run random and structured numbers, as many as you like, beside the installed authorities.

    The cases are written as case files into `declared/` in the folder of the reports: run one again, or keep it.

    \b
    Examples:
      gguf-conformance sweep --subject impl --blocks 100000 --seed 7
      gguf-conformance sweep -S ./my-adapter --type Q4_K --type Q6_K
    """
    from conformance.commands import run_command
    from conformance.report.write import fresh_folder
    from conformance.run.setup import Options
    from conformance.sweep import Sweep, names

    _expect_subjects()
    target = folder or fresh_folder(_default_folder())
    swept = Sweep(names(types), blocks, seed)
    cases = swept.write(target / "declared")
    options["subjects"] = tuple(options["subjects"])
    return run_command(Options(oracle="live", cases=cases, select=swept.suites, **options), target, color, by_type=True)


@main.command("list")
@_select
@_cases
@_json
@_one_screen
def list_cases(select: tuple[str, ...], cases: Path | None, as_json: bool) -> None:
    """List cases: id, what is asked, and the labels of what it stands for (docs/reader-rules.md, docs/block-rules.md).

    \b
    Examples:
      gguf-conformance list -s 'container/**'
      gguf-conformance list --json | jq -r '.[].id'
    """
    from conformance.commands import list_command
    from conformance.run.setup import Options

    list_command(Options((), select, cases=cases), as_json=as_json)


@main.command()
@click.argument("case", shell_complete=_complete_case)
@click.option("--subject", "-S", "subjects", multiple=True, metavar="NAME|PATH", shell_complete=_complete_subject,
              help="Ask these subjects; default: impl.")  # fmt: skip
@_oracle
@_profile
@_cases
@_color
@_one_screen
def explain(case: str, subjects: tuple[str, ...], color: str, **options: Any) -> int:
    """Show one case: its recipe, its bytes by field, and what every authority and subject answers.

    \b
    Example:
      gguf-conformance explain container/alignment/0 -S impl
    """
    from conformance.commands import explain_command
    from conformance.run.setup import Options

    _expect_subjects()
    return explain_command(Options(subjects or ("impl",), (case,), jobs=1, **options), color)


@main.command()
@_select
@_cases
@_one_screen
def record(select: tuple[str, ...], cases: Path | None) -> int:
    """Record what the installed authorities answer, as golden answers for runs without them.

    \b
    Example:
      gguf-conformance record -s 'blocks/q8_0'
    """
    from conformance.commands import record_command
    from conformance.run.setup import Options

    _expect_subjects()
    return record_command(Options((), select, "live", cases=cases))


@main.command()
@click.argument("events", type=click.Path(path_type=Path))
@click.option("--to", "folder", type=click.Path(path_type=Path, file_okay=False), help="Write Markdown, JSON and JUnit there.")
@_by_type
@_color
@_one_screen
def report(events: Path, folder: Path | None, by_type: bool, color: str) -> int:
    """Make the reports again from a run's events; a run that was cut short is said to be so.

    \b
    Example:
      gguf-conformance report reports/20260101-120000/events.ndjson --to out
    """
    from conformance.report.command import report_command
    from conformance.report.console import Color

    return report_command(
        events / "events.ndjson" if events.is_dir() else events, folder, color=cast("Color", color), by_type=by_type
    )


@main.command()
@click.argument("events", nargs=-1, required=True, type=click.Path(path_type=Path))
@_select
@click.option("--html", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Write a page there, index.html, and one for each divergence.")  # fmt: skip
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it as Markdown.")
@click.option("--record", is_flag=True, help="Put the summary into the checkout's docs/matrix.md.")
@_color
@_one_screen
def matrix(
    events: tuple[Path, ...], select: tuple[str, ...], html: Path | None, markdown: Path | None, record: bool, color: str
) -> int:
    """Show cases by subjects, from the events of one or several runs (docs/matrix.md).

    EVENTS are streams or the folders that hold them. A subject that is in several of them is taken from the run that began last.

    \b
    Exit codes: 0, whatever the verdicts; 3 where a run is not whole.

    \b
    Examples:
      gguf-conformance matrix reports/20260101-120000
      gguf-conformance matrix reports/*/events.ndjson --html out
      gguf-conformance matrix reports/peers -s 'container/**' --markdown matrix.md
    """
    from conformance.matrix.command import Wanted, matrix_command
    from conformance.matrix.record import PAGE

    return matrix_command(events, select, Wanted(html, markdown, PAGE if record else None), color)


@main.command()
@_json
@_color
@_one_screen
def doctor(as_json: bool, color: str) -> int:
    """Say which authorities are installed, and whether they are the builds whose bits do not depend on the machine."""
    from conformance.commands import doctor_command

    return doctor_command(color, as_json=as_json)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--tensor", "-t", metavar="NAME|INDEX", help="Show this tensor's first values.")
@click.option("--values", "-n", default=8, type=click.IntRange(1), help="How many of them.")
@click.option("--all", "show_all", is_flag=True, help="Show arrays whole.")
@_json
@_color
@_one_screen
def inspect(file: Path, color: str, tensor: str | None, values: int, show_all: bool, as_json: bool) -> int:
    """Show a file's metadata and tensors.

    \b
    Examples:
      gguf-conformance inspect model.gguf
      gguf-conformance inspect model.gguf --tensor token_embd.weight --values 8
      gguf-conformance inspect model.gguf --json | jq '.tensors | length'
    """
    from conformance.inspect import describe, to_json

    description = describe(file, tensor=tensor, values=values, whole=show_all)
    if as_json:
        click.echo(to_json(description))
    else:  # what draws tables is loaded only to draw them
        from conformance.inspect_view import render
        from conformance.report.console import Color, make_console

        render(description, make_console(sys.stdout, cast("Color", color), None))
    return EXIT_DIVERGENCE if description.problem else EXIT_OK


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@_json
@_color
@_one_screen
def scan(file: Path, color: str, as_json: bool) -> int:
    """Look at every block of a file: broken, lost and coarse scales, values that are no numbers, blocks of zeros.

    \b
    Exit codes: 0 nothing is wrong; 1 something is (docs/scales.md says what).

    \b
    Examples:
      gguf-conformance scan model.gguf
      gguf-conformance scan model.gguf --json | jq '.tensors[] | select(.found)'
    """
    from conformance.commands import scan_command

    return scan_command(file, color, as_json=as_json)


@main.command()
@_select
@_cases
@_one_screen
def fetch(select: tuple[str, ...], cases: Path | None) -> int:
    """Fetch the real files that model cases need, by pip, into the cache."""
    from conformance.commands import fetch_command
    from conformance.run.setup import Options

    return fetch_command(Options((), select, cases=cases))


def _complete_mutant(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of mutants."""
    from conformance.mutants.catalogue import load_catalogue

    return [name for name in load_catalogue() if name.startswith(incomplete)]


@main.command()
@click.option("--mutant", "-m", "names", multiple=True, metavar="NAME", shell_complete=_complete_mutant,
              help="Only this one. May be given several times.")  # fmt: skip
@click.option("--oracle", type=click.Choice(["live", "golden"]), default="golden", show_default=True,
              help="live: ask the installed authorities too. golden: recorded answers.")  # fmt: skip
@click.option("--search/--no-search", default=True, help="Whether search is let loose on each mutant, too.")
@click.option("--seconds", default=60.0, type=click.FloatRange(0, min_open=True), show_default=True, help="Of search, a mutant.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Lanes of processes; default: as many as cores.")
@click.option("--list", "only_list", is_flag=True, help="Only say what there is.")
@click.option("--record", is_flag=True, help="Write the matrix to the checkout's record and docs/mutants.md.")
@_json
@_color
@_one_screen
def mutants(only_list: bool, search: bool, seconds: float, record: bool, as_json: bool, color: str, **options: Any) -> int:
    """Break the reference on purpose, fault by fault, and see that the corpus notices (docs/mutants.md).

    \b
    Exit codes: 0 every mutant is killed by the corpus; 1 one lives, which is a hole in it.

    \b
    Examples:
      gguf-conformance mutants --no-search
      gguf-conformance mutants --mutant data-start-at-32 --seconds 20
      gguf-conformance mutants --list
    """
    from conformance.mutants.command import Wanted, list_command, mutants_command
    from conformance.run.setup import Options

    names = tuple(options["names"])
    if only_list:
        return list_command(names, as_json=as_json)
    _expect_subjects()
    asked = Options((), oracle=options["oracle"], jobs=options["jobs"])
    return mutants_command(Wanted(names, asked, seconds if search else 0, record), color, as_json=as_json)


@main.group()
def bench() -> None:
    """Measure how long the reference takes beside llama.cpp."""


@bench.command("blocks")
@click.option("--type", "-t", "types", multiple=True, metavar="TYPE", help="Only this type (Q4_K). May be given several times.")
@click.option(
    "--seconds", default=2.0, type=click.FloatRange(0), help="How long to measure each op of each type.", show_default=True
)
@click.option("--threads", multiple=True, default=(1, 2), type=click.IntRange(1), help="With how many threads.", show_default=True)
@_json
@_one_screen
def bench_block_types(types: tuple[str, ...], seconds: float, threads: tuple[int, ...], as_json: bool) -> int:
    """Measure quantize and dequantize of every type against ggml's own, in turn and on the same data (docs/benchmarks.md).

    \b
    Examples:
      gguf-conformance bench blocks --type Q4_K --type Q6_K
      gguf-conformance bench blocks --seconds 0.5 --threads 1 --json > blocks.json
    """
    from conformance.bench.command import bench_blocks

    return bench_blocks(types, seconds, threads, as_json=as_json)


@bench.command("model")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--requantize", "-q", multiple=True, metavar="TYPE",
              default=("Q8_0", "Q4_0", "Q5_1", "Q4_K", "Q6_K"), show_default=True,
              help="Quantize the values to this type again, if its blocks fit the rows. May be given several times.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), default=os.cpu_count, help="How many work at it.  [default: as many as cores]")
@click.option(
    "--seconds", default=2.0, type=click.FloatRange(0), show_default=True, help="How long to measure the cost beside C alone."
)
@_json
@_one_screen
def bench_whole_model(file: Path, requantize: tuple[str, ...], threads: int, seconds: float, as_json: bool) -> int:
    """Compare the reference with llama.cpp's library on a whole file: bytes, values, and these quantized again.

    \b
    Examples:
      gguf-conformance bench model model.gguf
      gguf-conformance bench model model.gguf --requantize IQ4_NL --threads 1 --json
    """
    from conformance.bench.model_command import bench_model

    return bench_model(file, requantize, threads, seconds, as_json=as_json)


@bench.command("compiling")
@click.option("--type", "-t", "types", multiple=True, metavar="TYPE", help="Only this type (Q4_K). May be given several times.")
@_json
@_one_screen
def bench_first_uses(types: tuple[str, ...], as_json: bool) -> int:
    """Measure how long each op's first use takes, when its loops are compiled: once a machine (docs/benchmarks.md).

    \b
    Examples:
      gguf-conformance bench compiling --type Q4_K
      gguf-conformance bench compiling --json > compiling.json
    """
    from conformance.bench.command import bench_compiling

    return bench_compiling(types, as_json=as_json)


@main.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--seconds", default=60, type=click.IntRange(1), show_default=True, help="How long.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**31 - 1), help="Of libFuzzer's draws; 0 takes a new one each time.")
@click.option("--findings", default="fuzz-findings", type=click.Path(path_type=Path, file_okay=False), show_default=True,
              help="Where inputs go on which the reader breaks a rule.")  # fmt: skip
@click.option("--corpus", type=click.Path(path_type=Path, file_okay=False), help="A folder that keeps what reached new code.")
@_one_screen
def fuzz(files: tuple[Path, ...], seconds: int, seed: int, findings: Path, corpus: Path | None) -> int:
    """Fuzz the reference's reader, from the built files of the container cases; or look at FILES again.

    \b
    Examples:
      gguf-conformance fuzz --seconds 600 --corpus grown
      gguf-conformance fuzz fuzz-findings/crash-*
    """
    from conformance.fuzz.command import Plan, fuzz_command

    return fuzz_command(Plan(seconds, seed, findings, corpus), files)


@bench.command("header")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--seconds", default=2.0, type=click.FloatRange(0), show_default=True, help="How long to measure each file.")
@click.option(
    "--gguf-py/--no-gguf-py", default=True, show_default=True, help="Measure gguf-py too: about 10 s for a million strings."
)
@_json
@_one_screen
def bench_headers(files: tuple[Path, ...], seconds: float, gguf_py: bool, as_json: bool) -> int:
    """Measure opening a file: time beside llama.cpp and gguf-py, system calls, memory (docs/benchmarks.md).

    Without FILES: the models that cases name, a made file of a million strings, and one of 100 GB that takes no room.

    \b
    Examples:
      gguf-conformance bench header
      gguf-conformance bench header model.gguf --seconds 5 --json
    """
    from conformance.bench.header_command import bench_header

    return bench_header(files, seconds, gguf_py=gguf_py, as_json=as_json)


@bench.command("search")
@click.option("--subject", "-S", default="impl", show_default=True, metavar="NAME|PATH", shell_complete=_complete_subject,
              help="Who is searched.")  # fmt: skip
@click.option("--against", "-A", default="llama.cpp", show_default=True, metavar="NAME|PATH", shell_complete=_complete_subject,
              help="Whom it is held to.")  # fmt: skip
@click.option("--type", "-t", "types", multiple=True, metavar="TYPE",
              help="These types, not the cheap ones of 32 elements. May be given several times.")  # fmt: skip
@click.option("--seconds", default=3.0, type=click.FloatRange(0), show_default=True, help="How long to measure each.")
@_json
@_one_screen
def bench_search_rates(subject: str, against: str, types: tuple[str, ...], seconds: float, as_json: bool) -> int:
    """Measure how many files and blocks a second a search puts to both sides and compares (docs/benchmarks.md).

    \b
    Examples:
      gguf-conformance bench search
      gguf-conformance bench search --type Q4_K --seconds 10 --json
    """
    from conformance.bench.command import bench_search

    _expect_subjects()
    return bench_search(subject, against, types, seconds, as_json=as_json)


@main.command("search")
@click.option("--subject", "-S", metavar="NAME|PATH", shell_complete=_complete_subject,
              help="Who is searched: an adapter or an authority.")  # fmt: skip
@click.option("--harness", is_flag=True, help="Search the harness itself, instead of a subject (docs/search-harness.md).")
@click.option("--against", "-A", default="llama.cpp", show_default=True, metavar="NAME|PATH", shell_complete=_complete_subject,
              help="Whom it is held to: an authority, or another adapter.")  # fmt: skip
@click.option(
    "--op", "ops", multiple=True, metavar="OP", help="Only this op. May be given several times.  [default: all that both do]"
)
@click.option(
    "--type", "-t", "types", multiple=True, metavar="TYPE", help="Only numbers of this type (Q4_K). May be given several times."
)
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="How long.  [default: 60, without --examples]")
@click.option("--examples", type=click.IntRange(1), help="How many draws; the same seed then finds the same.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**31 - 1), show_default=True, help="Which draws.")
@click.option("--stop-at-first", is_flag=True, help="End at the first divergence; it is not made small, and not written.")
@click.option("--skip-known", is_flag=True, help="Count, and leave alone, divergences with a signature in its divergences.yaml.")
@click.option("--promote", is_flag=True, help="Add what is found to the cases, in found/, with what the authorities answer.")
@click.option("--database", type=click.Path(path_type=Path, file_okay=False),
              help="Where finds are kept, to be tried first the next time.  [default: the cache, of a search by time]")  # fmt: skip
@click.option("--no-database", is_flag=True, help="Keep nothing, and try nothing that was kept.")
@click.option(
    "--report",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where cases and reports go; default: reports/<time>.",
)
@_cases
@_json
@_one_screen
def search_inputs(subject: str | None, harness: bool, folder: Path | None, as_json: bool, **options: Any) -> int:
    """Let hypothesis look for inputs on which two subjects differ, and make each as small as it can be (docs/search.md).

    \b
    Exit codes: 0 nothing was found; 1 the subject departs somewhere; 2 also where nothing came to be compared; others as ever.

    \b
    Examples:
      gguf-conformance search --subject impl --seconds 300
      gguf-conformance search --subject gguf-py --against llama.cpp --op header --op load
      gguf-conformance search --subject ./my-adapter --type Q4_K --examples 500 --seed 7 --promote
      gguf-conformance search --harness --seconds 600
    """
    from conformance.search.command import DEFAULT_SECONDS, SearchOptions, search_command

    if harness == (subject is not None):
        raise UsageError("a search has one object", hint="name it: --subject NAME, or --harness for the harness itself")
    if subject is None:
        from conformance.search.harness.command import harness_command

        seconds = options["seconds"] if options["seconds"] or options["examples"] else DEFAULT_SECONDS
        return harness_command(seconds, options["examples"], options["seed"], folder or _default_folder())
    _expect_subjects()
    options["subject"] = subject
    options["ops"], options["types"] = tuple(options["ops"]), tuple(options["types"])
    return search_command(SearchOptions(**options), folder or _default_folder(), fresh=folder is None, as_json=as_json)


def _complete_language(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete languages that there are templates for."""
    from conformance.new_adapter import languages

    return [language for language in languages() if language.startswith(incomplete)]


@main.command("new-adapter")
@click.argument("language", shell_complete=_complete_language)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="What it is called in reports; default: as the folder.")
@_one_screen
def new_adapter(language: str, folder: Path, name: str | None) -> int:
    """Write an adapter that keeps the protocol, for your library to be put in: rust, go, javascript, c or python.

    \b
    Examples:
      gguf-conformance new-adapter rust my-adapter
      gguf-conformance new-adapter python ~/src/reader/conformance --name reader
    """
    from conformance.new_adapter import new_adapter_command

    return new_adapter_command(language, folder, name)


@main.command("build")
@click.argument("subjects", nargs=-1, required=True, metavar="NAME|PATH...", shell_complete=_complete_subject)
@click.option("--again", is_flag=True, help="Build also where nothing has changed since the last time.")
@_one_screen
def build_adapters(subjects: tuple[str, ...], again: bool) -> int:
    """Build adapters by the commands in their manifests, into folders of the cache.

    \b
    Examples:
      gguf-conformance build candle gguf-parser-go
      gguf-conformance build ./my-adapter --again
    """
    from conformance.commands import build_command

    _expect_subjects()
    return build_command(subjects, again=again)


@main.command("peers")
@click.argument("names", nargs=-1, metavar="[NAME|PATH]...", shell_complete=_complete_subject)
@click.option("--present", is_flag=True, help="Leave out, and tell of, adapters in languages that this machine does not have.")
@click.option("--build-only", is_flag=True, help="Build and greet them; run nothing.")
@_select
@_oracle
@click.option("--report", "folder", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_REPORTS / "peers",
              show_default=True, help="Where the reports go, and the matrix.")  # fmt: skip
@click.option("--update-known", "update", is_flag=True, help="Write what they show into each one's divergences.yaml.")
@_judges_only
@click.option("--record", is_flag=True, help="Put the summary into the checkout's docs/matrix.md.")
@_color
@_one_screen
def real_implementations(names: tuple[str, ...], present: bool, build_only: bool, **options: Any) -> int:
    """Build the adapters of real implementations, or those named, and run the cases over all that could be built.

    Ends with the matrix (docs/matrix.md), and, after a live run of all cases in a checkout, with what of it differs from that
    page's summary. An adapter that cannot be built is told, the others go on, and the exit code is 3.

    \b
    Examples:
      gguf-conformance peers
      gguf-conformance peers candle gguf-parser-go --select 'container/**'
      gguf-conformance peers --present --report reports/peers
    """
    from conformance.commands import PeersRun, check_peers, run_peers, say
    from conformance.peers import peers_command

    _expect_subjects()
    run = PeersRun(**options)
    if not build_only:
        check_peers(run)
    return peers_command(names, (lambda _: EXIT_OK) if build_only else partial(run_peers, run), say, only_present=present)


@main.command("build-authority")
@click.option("--wheel-only", is_flag=True, help="Build the wheel into the cache, install nothing.")
@_one_screen
def build_authority(wheel_only: bool) -> int:
    """Build and install llama-cpp-python with the flags that make its bits independent of the machine (six minutes)."""
    from conformance.subjects.authorities.build import main as build

    return build(["--wheel-only"] if wheel_only else [])


if __name__ == "__main__":
    main()

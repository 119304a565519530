"""Options of commands that read a table, and the table that they describe."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import isthmus
import isthmus as ist
from isthmus.cli.output import name_table
from isthmus.cli.parsing import at_least, match_name, one_of, suggestion
from isthmus.errors import ArgumentError, FormatError, MismatchError, SchemaError
from isthmus.tables.read_table import ENDINGS, TableFile, open_table
from isthmus.tables.text_files import TextFormat

if TYPE_CHECKING:
    from types import ModuleType

    from isthmus.graphs import CPDAG, DAG, PAG, PDAG
    from isthmus.networks import Network
    from isthmus.samplers import Sampler
    from isthmus.scores.base import Score
    from isthmus.searches import Search
    from isthmus.tables import Missing, Transform

# --- Strategies as options -----------------------------------------------------------------------
#
# Parse scores, searches and other strategies written as in Python, such as ``BDeu(ess=10)``.

T = TypeVar("T")


class StrategyOption(argparse.Action):
    """An option whose value is a strategy; ``%(names)s`` in its help stands for all of them.

    The names are found out when the help is printed, because that costs the import of the library.
    """

    def __init__(self, *arguments: Any, names: Callable[[], list[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.names = _Names(names)

    def __call__(
        self, _: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *__: Any
    ) -> None:
        """Store the strategy."""
        setattr(namespace, self.dest, values)


@dataclasses.dataclass(frozen=True)
class _Names:
    find: Callable[[], list[str]]

    def __str__(self) -> str:
        return ", ".join(self.find())


def table_score_names() -> list[str]:
    """Return the scores of a table, as they are written."""
    return _listed(s for s in _scores().values() if not _is_of_series(s.gives))


def search_names() -> list[str]:
    """Return the searches, as they are written."""
    return _listed(_searches().values())


def sampler_names() -> list[str]:
    """Return the samplers, as they are written."""
    return _listed(_strategies(isthmus.samplers, isthmus.samplers.Sampler).values())


def missing_names(*without: str) -> list[str]:
    """Return the strategies for missing values, as they are written."""
    classes = _strategies(isthmus.tables, isthmus.tables.Missing).values()
    return [name for name in _listed(classes) if name not in without]


def transform_names() -> list[str]:
    """Return the transforms of columns, as they are written."""
    return _listed(_strategies(isthmus.tables, isthmus.tables.Transform).values())


def score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes."""
    score: Score[Any, Any] = _build(text, _scores())
    return score


def search_from(text: str, modules: Sequence[ModuleType] = ()) -> Search[Any]:
    """Return the search algorithm that a text describes, from these modules too."""
    kind = isthmus.searches.Search
    found = {name: each for m in modules for name, each in _strategies(m, kind).items()}
    search: Search[Any] = _build(text, _searches() | found)
    return search


def table_search_from(text: str) -> Search[Any]:
    """Return the search algorithm that a text describes, one that learns from a table."""
    search = search_from(text)
    return _of_table(search, search.accepts)


def table_score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes, one of a table."""
    score = score_from(text)
    return _of_table(score, score.gives)


def _of_table(strategy: T, capabilities: Iterable[object]) -> T:
    if _is_of_series(capabilities):
        raise argparse.ArgumentTypeError(
            f"{type(strategy).__name__} is for time series: isthmus learn FILE --lags 2 --search "
            "Dynotears"
        )
    return strategy


def needs_lags(search: Search[Any] | None) -> bool:
    """Return whether a search needs lagged variables."""
    return search is not None and _is_of_series(search.accepts)


def _is_of_series(capabilities: Iterable[object]) -> bool:
    """Return whether a strategy needs lagged variables, which a table does not have."""
    return isthmus.objectives.LAGGED_MODEL in capabilities


def sampler_from(text: str) -> Sampler[Any]:
    """Return the sampler that a text describes."""
    sampler: Sampler[Any] = _build(text, _strategies(isthmus.samplers, isthmus.samplers.Sampler))
    return sampler


def missing_from(text: str) -> Missing:
    """Return the strategy for missing values that a text describes."""
    missing: Missing = _build(text, _strategies(isthmus.tables, isthmus.tables.Missing))
    return missing


def transform_from(text: str) -> Transform:
    """Return the transform of columns that a text describes."""
    transform: Transform = _build(text, _strategies(isthmus.tables, isthmus.tables.Transform))
    return transform


def _scores() -> dict[str, type[Score[Any, Any]]]:
    from isthmus.scores.base import Score

    return _strategies(isthmus.scores, Score)


def _searches() -> dict[str, type[Search[Any]]]:
    return _strategies(isthmus.searches, isthmus.searches.Search)


def _listed(classes: Iterable[type]) -> list[str]:
    """Return the names in alphabetical order, each with the options that it needs."""
    return sorted((_usage(each) for each in classes), key=str.lower)


def _strategies(package: Any, base: Any) -> dict[str, Any]:
    """Return the classes that can be built: those that no other one extends."""
    public = [getattr(package, name) for name in package.__all__]
    known = [
        item
        for item in public
        if isinstance(item, type) and issubclass(item, base) and dataclasses.is_dataclass(item)
    ]
    extended = {parent for item in known for parent in item.__mro__[1:]}
    return {item.__name__: item for item in known if item not in extended}


def _build(text: str, classes: Mapping[str, type]) -> Any:
    """Build the described object; names, keywords and constants are parsed and never executed."""
    given, options = _parts(text)
    name = match_name(given, sorted(classes))
    allowed = [f.name for f in dataclasses.fields(classes[name]) if f.init]
    unknown = sorted(set(options).difference(allowed))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{name} has no option {unknown[0]!r}{suggestion(unknown[0], allowed)}"
        )
    needed = [f.name for f in dataclasses.fields(classes[name]) if _is_needed(f)]
    lacking = [option for option in needed if option not in options]
    if lacking:
        raise argparse.ArgumentTypeError(
            f"{name} needs the option {lacking[0]!r}: {_usage(classes[name])}"
        )
    try:
        return classes[name](**options)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    nothing = dataclasses.MISSING
    return field.init and field.default is nothing and field.default_factory is nothing


def _usage(kind: type) -> str:
    """Return how to write a strategy with the options that it needs."""
    needed = ", ".join(f"{f.name}=..." for f in dataclasses.fields(kind) if _is_needed(f))
    return f"{kind.__name__}({needed})" if needed else kind.__name__


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    wrong = argparse.ArgumentTypeError(
        f"{text!r} must have the form NAME or NAME(option=value, ...)."
    )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, {}
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.args:
            raise wrong
        return tree.func.id, {str(k.arg): _value(k.value) for k in tree.keywords}
    except (SyntaxError, ValueError):
        raise wrong from None


def _value(node: ast.expr) -> Any:
    """Return a constant, or the score or search that an option of another one describes."""
    if isinstance(node, ast.Call):
        return _build(ast.unparse(node), {**_scores(), **_searches()})
    return ast.literal_eval(node)


# --- Options of commands that read a table, and the table that they describe --------------------

# Names for help texts, which must not import the library: a test compares them.
KINDS = ("continuous", "discrete")
UNITS = ("seconds", "minutes", "hours", "days", "weeks", "years")


def add_table_options(
    command: argparse.ArgumentParser, missing: Callable[[], list[str]] = missing_names
) -> None:
    """Add the table, and options that say how to read it; `missing` names strategies."""
    command.add_argument(
        "file",
        metavar="FILE",
        help=f"file with the table ({', '.join(ENDINGS)}), or the URL of a database",
    )
    reading = command.add_argument_group("how to read the table")
    reading.add_argument(
        "--table", metavar="NAME", help="table of a database, or sheet of a workbook"
    )
    reading.add_argument("--separator", help="character between cells; by default recognised")
    reading.add_argument("--decimal", help="decimal mark, '.' or ','; by default recognised")
    reading.add_argument("--encoding", help="such as utf-8 or cp1252; by default recognised")
    reading.add_argument(
        "--na",
        action="append",
        metavar="MARK",
        help="cells with this text are missing; may be repeated; by default empty cells, NA, ? "
        "and the like",
    )
    reading.add_argument(
        "--no-header", action="store_true", help="the first line is data and not names"
    )
    reading.add_argument(
        "--skip-rows",
        type=at_least(0),
        default=0,
        metavar="NUMBER",
        help="rows above the names of the columns, such as titles; by default 0",
    )
    for kind in KINDS:
        reading.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="COLUMN",
            help=f"read this column as {kind}; may be repeated",
        )
    reading.add_argument(
        "--dates",
        action="append",
        nargs=2,
        default=[],
        metavar=("COLUMN", "UNIT"),
        help=f"read a column of dates as a number, in {', '.join(UNITS)}; may be repeated",
    )
    reading.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="ignore this column; may be repeated",
    )
    reading.add_argument(
        "--missing",
        action=StrategyOption,
        names=missing,
        type=missing_from,
        metavar="METHOD",
        help="what to do about missing values, which are refused by default: %(names)s",
    )
    reading.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column that says to which site, clinic or batch a row belongs; the mean of each "
        "group is removed",
    )


def add_knowledge_options(command: argparse.ArgumentParser) -> None:
    """Add options for background knowledge."""
    group = command.add_argument_group("background knowledge")
    group.add_argument(
        "--knowledge",
        metavar="FILE",
        help="TOML or JSON file with required, forbidden, tiers, roots, probabilities and "
        "expected_parents; the options below are added to it",
    )
    for name, meaning in (("required", "must"), ("forbidden", "must not")):
        group.add_argument(
            f"--{name}",
            action="append",
            nargs=2,
            default=[],
            metavar=("FROM", "TO"),
            help=f"an edge that {meaning} be in the graph; may be repeated",
        )
    group.add_argument(
        "--tier",
        action="append",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns of one tier; repeat for later tiers, which do not affect earlier ones",
    )


def add_arrangement_options(command: argparse.ArgumentParser) -> None:
    """Add options for rows of experiments, and for rows of a time series."""
    group = command.add_argument_group("interventions and time series")
    group.add_argument(
        "--interventions",
        metavar="COLUMN",
        help="the column that names the regime of each row, such as the experiment",
    )
    group.add_argument(
        "--targets",
        action="append",
        nargs="+",
        default=[],
        metavar=("REGIME", "VARIABLE"),
        help="a value of that column, and the variables that were set in its rows; may be "
        "repeated; rows of other regimes are observations",
    )
    group.add_argument(
        "--lags",
        type=at_least(1),
        metavar="NUMBER",
        help="the rows are a time series: learn how they depend on this many earlier rows",
    )
    group.add_argument("--time", metavar="COLUMN", help="column of times of a series, to sort by")
    group.add_argument("--by", metavar="COLUMN", help="column that tells several series apart")


def arranged(options: argparse.Namespace, file: TableFile) -> TableFile:
    """Return the table as rows of several regimes, or of time series, if options say so."""
    for name, needed in (("targets", "interventions"), ("time", "lags"), ("by", "lags")):
        if getattr(options, name) and getattr(options, needed) is None:
            raise ArgumentError(f"--{name} needs --{needed}.")
    if options.interventions is None and options.lags is None:
        return file
    if options.interventions is not None and options.lags is not None:
        raise ArgumentError("Give --interventions or --lags; there are no series of regimes.")
    for name in ("missing", "transform", "groups"):
        if getattr(options, name) is not None:
            raise ArgumentError(f"--{name} is for tables without --interventions and --lags.")
    kinds, column = kinds_of(options), options.interventions
    if column is None:
        series = ist.Series(
            file.table, lags=options.lags, by=options.by, time=options.time, kinds=kinds
        )
        return replace(file, table=series)
    import numpy as np

    from isthmus.tables.series import numpy_columns

    if not options.targets:
        raise ArgumentError(
            "--interventions needs --targets, which say for each regime of an experiment what was "
            "set in its rows: --targets REGIME VARIABLE. Without them, all rows are observations."
        )
    regimes = numpy_columns(file.table)
    labels = np.unique(regimes[column]).tolist() if column in regimes else []
    named = {str(label): label for label in labels}
    targets: dict[Any, list[str]] = {label: [] for label in labels}
    for regime, *variables in options.targets:
        if labels and regime not in named:
            raise SchemaError(f"{column!r} is never {regime!r}{suggestion(regime, named)}")
        targets.setdefault(named.get(regime, regime), []).extend(variables)
    return replace(file, table=ist.Interventions(file.table, targets, column=column, kinds=kinds))


def opened(options: argparse.Namespace) -> TableFile:
    """Open the table that the options describe."""
    name_table(options.file)
    given = TextFormat(
        separator={"tab": "\t", "\\t": "\t"}.get(options.separator, options.separator),
        decimal=options.decimal,
        encoding=options.encoding,
        missing=None if options.na is None else tuple(options.na),
        header=not options.no_header,
        skip_rows=options.skip_rows,
    )
    return open_table(
        options.file,
        drop=options.drop,
        text_format=given,
        table=options.table,
    )


def kinds_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return how the user wants some columns to be read."""
    both = sorted(set(options.continuous) & set(options.discrete))
    if both:
        raise SchemaError(f"The columns {both} were given as both continuous and discrete.")
    kinds: dict[str, Any] = {n: ist.Kind(kind) for kind in KINDS for n in getattr(options, kind)}
    unit = one_of(UNITS)
    try:
        return (kinds | {name: ist.TimeUnit(unit(given)) for name, given in options.dates}) or None
    except argparse.ArgumentTypeError as error:
        raise SchemaError(f"--dates: {error}") from None


def knowledge_of(options: argparse.Namespace) -> ist.Knowledge | None:
    """Return the background knowledge of the options, or None."""
    written = {} if options.knowledge is None else _read_knowledge(Path(options.knowledge))
    knowledge = ist.Knowledge(
        required=[*written.get("required", ()), *((a, b) for a, b in options.required)],
        forbidden=[*written.get("forbidden", ()), *((a, b) for a, b in options.forbidden)],
        tiers=[*written.get("tiers", ()), *options.tier],
        roots=written.get("roots", ()),
        probabilities=written.get("probabilities", ()),
        expected_parents=written.get("expected_parents"),
    )
    return None if knowledge == ist.Knowledge() else knowledge


def _read_knowledge(path: Path) -> dict[str, Any]:
    """Read background knowledge from a file."""
    with path.open("rb") as stream:
        try:
            content = json.load(stream) if path.suffix == ".json" else tomllib.load(stream)
        except ValueError as error:
            raise FormatError(f"{path} is neither TOML nor, as .json, JSON: {error}") from None
    keys = ("required", "forbidden", "tiers", "roots", "probabilities", "expected_parents")
    unknown = [key for key in content if key not in keys] if isinstance(content, dict) else [path]
    if unknown:
        raise FormatError(
            f"{path} has {unknown[0]!r}, and knowledge consists of {', '.join(keys)}. Write, for "
            'instance, forbidden = [["cancer", "smoking"]].'
        )
    return dict(content)


# --- Graphs and networks that a command is given: files, and built-in datasets by name ----------

DATASETS = ("asia", "burglary", "sprinkler", "water_level")
"""Names of the built-in datasets, for help texts, which must not import them."""
DATASET = "dataset:"
"""Prefix of the name of a built-in dataset, such as ``dataset:asia``."""
_READERS = {
    ".bif": "read_bif",
    ".xmlbif": "read_xmlbif",
    ".bifxml": "read_xmlbif",
    ".net": "read_hugin",
    ".xdsl": "read_xdsl",
    ".json": "read_json",
    ".rda": "read_rdata",
    ".rdata": "read_rdata",
    ".rds": "read_rdata",
    ".dot": "read_dot",
    ".gml": "read_gml",
    ".graphml": "read_graphml",
    ".csv": "read_edge_list",
    ".txt": "read_tetrad",
}
"""Functions of `isthmus.io` that read files with these extensions."""
NETWORKS = (
    "a network (.bif, .bifxml, .net, .xdsl, .json, .rda or .rds of bnlearn), a solution (.isthmus) "
    "or dataset:NAME"
)
"""Networks that can be queried or simulated, for help texts."""
GRAPHS = f"{NETWORKS}, or a graph (.dot, .gml, .graphml, .csv, a PAG of Tetrad as .txt)"
"""Graphs that can be compared, for help texts."""


@final
@dataclass(frozen=True)
class GraphFile:
    """A graph, and the network that it belongs to, if the file has one.

    Attributes
    ----------
    name
        The name that was given.
    graph
        The graph.
    content
        Content of the file: a graph, a network or a solution.
    """

    name: str
    graph: DAG | CPDAG | PDAG | PAG
    content: Any

    @property
    def dag(self) -> DAG:
        """The graph, which must be a DAG."""
        self._refuse_pag()
        if not isinstance(self.graph, ist.DAG):
            raise MismatchError(
                f"{self.name} has undirected edges. Give a file with a direction for each edge."
            )
        return self.graph

    @property
    def network(self) -> Network:
        """The network with parameters."""
        self._refuse_pag()
        content = self.content
        if isinstance(content, ist.Solution):
            try:
                content = content.fit()
            except MismatchError as refusal:
                raise MismatchError(
                    f"{self.name} has the graph but no parameters. Write the fitted network when "
                    "learning: isthmus learn DATA -o network.json. Or fit the graph to a table: "
                    f"isthmus fit {self.name} DATA -o network.json"
                ) from refusal
        models = ist.networks
        known = (models.DiscreteNetwork, models.GaussianNetwork, models.MixedNetwork)
        if not isinstance(content, known):
            raise MismatchError(
                f"{self.name} holds a graph without parameters. Fit them first: "
                f"isthmus fit {self.name} DATA -o network.json"
            )
        return content

    def _refuse_pag(self) -> None:
        if isinstance(self.graph, ist.PAG):
            raise MismatchError(
                f"{self.name} has a PAG: hidden common causes are possible, so it has no DAG of "
                "the columns alone and no parameters. Compare it with another PAG, or learn a DAG "
                "that assumes that there are none: isthmus learn DATA --search Boss"
            )


def read_graph_file(given: str) -> GraphFile:
    """Read a graph, a network or a solution."""
    from isthmus.results.solution_file import FORMAT, PAG_FORMAT, read_solution

    if given.startswith(DATASET):
        network = dataset(given.removeprefix(DATASET)).network
        return GraphFile(given, network.dag, network)
    path = Path(given)
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if not endings or endings[-1] not in (".isthmus", *_READERS):
        raise FormatError(f"{given!r} is unknown. Give {GRAPHS}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {given!r}. Check the name and the folder.")
    try:
        if endings[-1] == ".isthmus":
            kinds: Any = {FORMAT: ist.Solution, PAG_FORMAT: ist.PAGSolution}
            content: Any = read_solution(path, kinds)
        else:
            content = getattr(ist.io, _READERS[endings[-1]])(path)
    except FormatError as error:
        raise FormatError(f"{given} cannot be read: {error}") from None
    graphs = (ist.DAG, ist.CPDAG, ist.PDAG, ist.PAG)
    if isinstance(content, ist.PAGSolution):
        return GraphFile(given, content.pag, content)
    graph = content if isinstance(content, graphs) else content.dag
    return GraphFile(given, graph, content)


def dataset(name: str) -> Any:
    """Return a built-in dataset by its name."""
    if name.lower() not in DATASETS:
        raise FormatError(f"There is no dataset {name!r}{suggestion(name, DATASETS)}")
    return getattr(ist.datasets, name.lower())()

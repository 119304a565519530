"""The subcommand `isthmus query NETWORK`: ask a network with parameters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import isthmus as ist
from isthmus.cli.inputs import NETWORKS, read_graph_file
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, at_least, suggestion
from isthmus.errors import GraphError, SchemaError

if TYPE_CHECKING:
    from isthmus.networks import Network


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Print the distribution of variables, given observations (--given) or interventions (--do)."
    )
    command.add_argument("network", metavar="NETWORK", help=NETWORKS)
    command.add_argument(
        "--target",
        action="append",
        required=True,
        metavar="VARIABLE",
        help="variable to ask for; repeat for a joint distribution",
    )
    for name, meaning in (("given", "was observed to have"), ("do", "is set from outside to")):
        command.add_argument(
            f"--{name}",
            action="append",
            default=[],
            type=_assignment,
            metavar="VARIABLE=VALUE",
            help=f"the variable {meaning} this value; may be repeated",
        )
    command.add_argument(
        "--simulations",
        type=at_least(1),
        default=100_000,
        help="number of simulated rows if a mixed network has no exact answer",
    )
    command.add_argument(
        "--seed", type=at_least(0), default=0, help="random seed of the simulations"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Print the answer."""
    network = read_graph_file(options.network).network
    given, do = (_values(network, pairs) for pairs in (options.given, options.do))
    for name in options.target:
        _check_name(network, name)
    answer: Any
    if isinstance(network, ist.networks.MixedNetwork):
        answer = network.query(
            options.target, given, do, simulations=options.simulations, seed=options.seed
        )
    else:
        answer = network.query(options.target, given, do)
    say(str(answer))
    if isinstance(answer, ist.networks.ProbabilityRange | ist.networks.MeanRange):
        bounds = {"lower": answer.lower.tolist(), "upper": answer.upper.tolist()}
        give(identified=False, variables=answer.names, **bounds)
        return ExitCode.DONE
    error = getattr(answer, "error", None)
    simulated = {} if error is None else {"simulation_error": error.tolist()}
    if isinstance(answer, ist.networks.Nonparanormal):
        low, high = (end.tolist() for end in answer.interval())
        ends = {"level": 0.95, "lower": low, "upper": high}
        give(variables=answer.names, median=answer.median.tolist(), **ends, **simulated)
    elif isinstance(answer, ist.networks.Probabilities):
        give(levels=dict(answer.levels), probabilities=answer.values.tolist(), **simulated)
    else:
        moments = {"mean": answer.mean.tolist(), "covariance": answer.covariance.tolist()}
        give(variables=answer.names, **moments, **simulated)
    return ExitCode.DONE


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} must have the form VARIABLE=VALUE")
    return name.strip(), value.strip()


def _check_name(network: Network, name: str) -> None:
    nodes = network.dag.nodes
    if name not in nodes:
        raise GraphError(f"There is no variable {name!r}{suggestion(name, nodes)}")


def _values(network: Network, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the values as the network has them: levels or numbers."""
    from isthmus.networks.column_maps import TimeMap

    values: dict[str, Any] = {}
    for name, text in pairs:
        _check_name(network, name)
        if name in values:
            raise SchemaError(f"{name!r} was given two values. Give one.")
        own = network.levels.get(name, ())
        if own:
            levels = {str(level).lower(): level for level in own}
            number = _number(text) if name in network.maps else None
            if text.lower() not in levels and number is None:
                raise SchemaError(f"{name!r} is never {text!r}{suggestion(text, levels)}")
            values[name] = levels.get(text.lower(), number)
        else:
            values[name] = _number(text)
            if values[name] is None and isinstance(network.maps.get(name), TimeMap):
                values[name] = text
            elif values[name] is None:
                raise SchemaError(f"{name!r} is a number; got {text!r}.")
    return values


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

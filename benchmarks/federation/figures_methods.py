"""The methods of the figures: from the rows of each site to a graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import isthmus as ist
from isthmus.statistics import Schema
from isthmus_joint import ADMM, ADMMModel, Stiffness
from isthmus_joint.methods.admm import REQUESTS, ADMMCourse, ADMMRun, LinearClient, NetworkClient

THRESHOLD = 0.3


def _admm(clients, rows, search, schema, kind=ADMMModel.LINEAR):
    """Plain sums in place of secure ones."""
    names, loops = schema.names, np.eye(len(schema), dtype=bool)
    options = search._options(kind, names, loops, np.random.default_rng(0))  # noqa: SLF001
    first = REQUESTS[kind](names, 0, replace(options, seed=0))
    model = first.model(schema)

    def ask(course):
        if course.step == 0:
            return np.array([len(clients), rows], dtype=float)
        return np.sum([c.answer(course.common, course.rho) for c in clients], axis=0)

    run = ADMMRun(search, kind, model, ADMMCourse(model, first.options), ask)
    while not run.step():
        pass
    return run.edges(), run.done


def _names(d):
    return [f"x{i}" for i in range(d)]


def _centred(parts, *, pooled):
    """Subtract the means of each site, as a federation does, or those of all rows."""
    means = np.concatenate(parts).mean(axis=0)
    return [p - (means if pooled else p.mean(axis=0)) for p in parts]


def _linear(parts, search, *, pooled=False):
    n = sum(map(len, parts))
    clients = [LinearClient(p.T @ p / n) for p in _centred(parts, pooled=pooled)]
    return _admm(clients, n, search, Schema.continuous(_names(parts[0].shape[1])))


def admm(parts, _):
    """As the paper has it, with sites that centre on their own."""
    return {"admm": _linear(parts, ADMM())}


def admm_pooled(parts, _):
    """Sites that centre at the pooled means."""
    return {"admm pooled": _linear(parts, ADMM(), pooled=True)}


def admm_together(parts, _):
    """Sites that share the penalty on disagreement; the paper's has been chosen for eight sites."""
    search = ADMM(rho2=0.008, stiffness=Stiffness.TOGETHER)
    return {"admm together": _linear(parts, search)}


def dynamic_admm(parts, _):
    d, n = parts[0].shape[1] // 2, sum(map(len, parts))
    schema = Schema.continuous(_names(d)).with_lags(1)
    clients = [LinearClient(p.T @ p / n, d) for p in _centred(parts, pooled=True)]
    return {"dynamic admm": _admm(clients, n, ADMM(), schema, ADMMModel.DYNAMIC)}


def dynamic_all(parts, _):
    """What one secure sum of the moments of lagged columns gives."""
    d = parts[0].shape[1] // 2
    names = _names(d) + [f"x{i}@1" for i in range(d)]
    search = ist.Dynotears(
        penalty=0.01, lagged_penalty=0.01, threshold=THRESHOLD, lagged_threshold=0.1
    )
    frame = ist.Frame(np.concatenate(parts), names=names)
    found = ist.learn(frame, score=ist.LaggedLeastSquares(), search=search)
    return {"dynamic all data": (found.dag.adjacency()[:, :d], 0)}


def _notears(rows):
    """Weights of the paper's problem, λ = 0.01; a variable that is constant here has no edges."""
    weights = np.zeros((rows.shape[1],) * 2)
    moving = np.flatnonzero(rows.std(axis=0) > 0)
    if len(moving) < 2 or len(rows) < 2:
        return weights
    search = ist.Notears(penalty=0.01, threshold=THRESHOLD)
    found = ist.learn(ist.Frame(rows[:, moving]), score=ist.LeastSquares(), search=search)
    weights[np.ix_(moving, moving)] = found.details.weights_before_threshold
    return weights


def all_data_default(parts, _):
    """The same sum, with the library's own choice of penalty and threshold."""
    found = ist.learn(ist.Frame(np.concatenate(parts)), search=ist.Notears())
    return {"all data default": (found.dag.adjacency(), 0)}


def all_data(parts, _):
    """What one secure sum of moments gives."""
    return {"all data": (np.abs(_notears(np.concatenate(parts))) > THRESHOLD, 0)}


def secure_sum(parts, _):
    """The whole protocol in this process: `all data` from one secure sum of moments."""
    names = _names(parts[0].shape[1])
    tables = {f"s{k}": dict(zip(names, p.T, strict=True)) for k, p in enumerate(parts)}
    search = ist.Notears(penalty=0.01, threshold=THRESHOLD)
    found = ist.learn(ist.Federation.simulate(tables), score=ist.LeastSquares(), search=search)
    weights = found.details.weights_before_threshold
    return {"secure sum": (np.abs(weights) > THRESHOLD, 1)}


def _combined(weights, truth, prefix):
    """Votes of more than half; mean weights above the threshold; the site nearest to the truth."""
    graphs = np.abs(np.array(weights)) > THRESHOLD
    wrong = [_distance(g, truth) for g in graphs]
    return {
        f"{prefix}voting": (graphs.mean(axis=0) > 0.5, 0),
        f"{prefix}averaging": (np.abs(np.mean(weights, axis=0)) > THRESHOLD, 0),
        f"{prefix}best": (graphs[int(np.argmin(wrong))], 0),
    }


def _distance(edges, truth):
    either = (edges | edges.T) ^ (truth | truth.T)
    return np.triu(either, 1).sum() + (edges & truth.T & ~truth).sum()


def alone(parts, truth):
    return _combined([_notears(p) for p in parts], truth, "")


def _voted_classes(marks, truth):
    """Votes over equivalence classes; an edge without direction is right where there is one."""
    votes = np.mean(marks, axis=0) > 0.5
    undirected = votes & votes.T
    backward = np.tril(undirected)
    return (votes & ~undirected) | (undirected & truth) | (backward & ~truth & ~truth.T)


def xges_voting(parts, truth):
    """Greedy equivalence search with the BIC: the family of FGES."""
    marks = []
    for rows in parts:
        mark = np.zeros(truth.shape, dtype=bool)
        moving = np.flatnonzero(rows.std(axis=0) > 0)
        if len(moving) > 1 and len(rows) > 1:
            found = ist.learn(
                ist.Frame(rows[:, moving]), score=ist.GaussianBIC(), search=ist.XGES()
            )
            mark[np.ix_(moving, moving)] = _marks(found.cpdag)
        marks.append(mark)
    return {"xges voting": (_voted_classes(marks, truth), 0)}


def _marks(cpdag):
    at = {n: i for i, n in enumerate(cpdag.nodes)}
    found = np.zeros((len(at), len(at)), dtype=bool)
    for a, b in cpdag.directed:
        found[at[a], at[b]] = True
    for a, b in cpdag.undirected:
        found[at[a], at[b]] = found[at[b], at[a]] = True
    return found


def pc_voting(parts, truth):
    """PC of causal-learn with Fisher's z at 0.05; a site with too few rows has no edges."""
    from causallearn.search.ConstraintBased.PC import pc

    marks = []
    for rows in parts:
        mark = np.zeros(truth.shape, dtype=bool)
        if len(rows) > 4:
            # Of a pair, -1 is a tail and 1 a head; [i, j] is the mark at i.
            try:
                graph = pc(rows, 0.05, "fisherz", show_progress=False).G.graph
                mark = (graph == -1) & ((graph.T == 1) | (graph.T == -1))
            except ValueError:  # a singular correlation matrix
                pass
        marks.append(mark)
    return {"pc voting": (_voted_classes(marks, truth), 0)}


# --- neural networks -----------------------------------------------------------------------------


def _networks(parts, search, *, pooled=False):
    n = sum(map(len, parts))
    clients = [NetworkClient(p, search.hidden, n) for p in _centred(parts, pooled=pooled)]
    schema = Schema.continuous(_names(parts[0].shape[1]))
    return _admm(clients, n, search, schema, ADMMModel.PERCEPTRON)


def mlp_admm(parts, _):
    """The schedule of the library, with pooled means."""
    return {"mlp admm": _networks(parts, ADMM(), pooled=True)}


def mlp_admm_paper(parts, _):
    """The schedule of the paper."""
    search = ADMM(penalty=0.001, rho1=0.1, rho2=0.1, stiffness=Stiffness.EACH)
    return {"mlp admm paper": _networks(parts, search)}


def _mlp(rows):
    search = ist.NotearsMLP(penalty=0.01, threshold=THRESHOLD)
    found = ist.learn(ist.Frame(rows - rows.mean(axis=0)), score=ist.Perceptrons(), search=search)
    return found.details.weights


def mlp_alone(parts, truth):
    return _combined([_mlp(p) for p in parts], truth, "mlp ")


def mlp_all(parts, _):
    return {"mlp all data": (_mlp(np.concatenate(parts)) > THRESHOLD, 0)}


def curves(parts, _):
    """What a secure sum of moments of a few basis functions gives: additive curves, no networks."""
    rows = ist.Frame(np.concatenate(parts))
    wide = ist.WithFeatures(rows, ist.Chebyshev(2))
    found = ist.learn(wide, score=ist.AdditiveLeastSquares(), search=ist.NotearsAdditive())
    return {"curves": (found.dag.adjacency(), 0)}


METHODS = (
    (("admm",), admm),
    (("admm pooled",), admm_pooled),
    (("admm together",), admm_together),
    (("all data",), all_data),
    (("all data default",), all_data_default),
    (("secure sum",), secure_sum),
    (("voting", "averaging", "best"), alone),
    (("xges voting",), xges_voting),
    (("pc voting",), pc_voting),
    (("dynamic admm",), dynamic_admm),
    (("dynamic all data",), dynamic_all),
    (("mlp admm",), mlp_admm),
    (("mlp admm paper",), mlp_admm_paper),
    (("mlp all data",), mlp_all),
    (("curves",), curves),
    (("mlp voting", "mlp averaging", "mlp best"), mlp_alone),
)
"""The names of what a function gives, and the function."""

"""A Bayesian network as an estimator of scikit-learn (extra ``[sklearn]``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, MissingExtraError, SchemaError
from isthmus.graphs import DAG, Knowledge
from isthmus.networks import GaussianNetwork, MixedNetwork
from isthmus.networks.column_maps import read_column
from isthmus.networks.columns import Unseen, check_unseen, is_absent
from isthmus.networks.support import warn_outside
from isthmus.results.reading import FEW_VALUES
from isthmus.statistics import Kind
from isthmus.tables import Frame, Missing, MissingAsLevel, Transform
from isthmus.tables.infer_kinds import NUMBERS
from isthmus.tables.kinds import as_kind
from isthmus.tables.written_numbers import Writing, writing_of
from isthmus.verbs.arguments import check_score, check_seed
from isthmus.verbs.evaluate import for_target, log_likelihood
from isthmus.verbs.learn import learn

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.metaestimators import available_if
except ImportError:  # the module can be imported all the same; an estimator cannot be made
    BaseEstimator = object

    def available_if(_: Any) -> Any:
        """Stand in for the decorator of scikit-learn."""
        return lambda method: method


if TYPE_CHECKING:
    from isthmus.scores import Score
    from isthmus.searches import Search

_IN_FIT = (
    "Say what to do about missing values: BayesianNetwork(missing=DropRows()), or "
    "MissingAsLevel(), AvailableCases() or StructuralEM() for categories, or "
    "ExpectationMaximisation() for numbers."
)
_IN_QUESTIONS = (
    "Rows to predict must be complete, as scikit-learn expects, unless the estimator is told what "
    "to do about missing values: BayesianNetwork(missing=DropRows()) fits complete rows, and its "
    "predictions average over what is unknown in a row."
)
_IN_SCORE = (
    "Rows to score by their likelihood must be complete, unless missing=MissingAsLevel(): fill in "
    "the missing values, or drop these rows."
)


@final
class BayesianNetwork(BaseEstimator):  # type: ignore[misc] # scikit-learn is not typed
    """Learn a Bayesian network, and predict one of its variables from the others.

    With ``fit(X, y)`` the column ``y`` becomes a variable of the network, and `predict` and `score`
    are about it. It is read as any other column: text, categories, Booleans and whole numbers with
    at most four different values are classes, and other numbers are predicted by their expected
    value, also if they are written as text; `target_kind` decides otherwise. With ``fit(X)`` alone,
    `score` is the log-likelihood per row, and `predict` is about `target`.

    Parameters
    ----------
    score_function
        A score such as ``BIC()``; by default chosen from the columns.
    search
        A search such as ``Boss()``; by default chosen from the columns.
    knowledge
        Required and forbidden edges, and tiers. The column ``y`` is called by its name if it has
        one that is free, otherwise ``"target"``; columns of an array are called ``"x0"``, ``"x1"``
        and so on.
    kinds
        How to read some columns: ``{"age": "continuous"}``.
    column_transform
        A step such as ``NormalScores()`` before the graph is learned, as for `isthmus.learn`.
        Predictions have the units of the columns.
    missing
        How to handle missing values in `fit`, such as ``DropRows()``; by default they are
        refused, in `fit` and in `predict`. With any strategy, predictions average over what is
        unknown in a row, unless missing is a level of its own, ``MissingAsLevel()``.
    target
        Name of the column of ``X`` to predict, if no ``y`` is given.
    target_kind
        ``"discrete"`` makes the estimator a classifier, ``"continuous"`` a regressor. By default
        `fit` decides by the values of the column to predict, so that tools which ask before
        `fit`, such as stratified folds of ``cross_val_score``, need this option.
    unseen
        A level that `fit` has not seen counts as an unknown cell in `predict` and `score`, with a
        warning, as ``handle_unknown="ignore"`` of other estimators; ``"error"`` refuses it.
    pseudo_count
        Weight of the prior of the parameters, in rows.
    random_state
        Random seed of the search, an integer.
    time_limit
        Stop the search after this many seconds.

    Attributes
    ----------
    solution_
        The learned solution; see `isthmus.Solution`.
    network_
        The graph with its parameters.
    predictor_
        The network of `predict` and `predict_proba`. It is `network_`, unless probabilities of the
        levels of the target are much too sharp there, even in the rows of `fit`, because numbers
        that depend on it are far from normal. Then the target has a regression on its Markov
        blanket or on its parents, or its shares, and depends on nothing else.
    target_
        Name of the variable to predict, or None.
    writings_
        How the numbers of columns of text were written in `fit`, by name. Rows to predict or to
        score must be written in the same way.
    classes_
        Levels of the variable to predict, if it is discrete; otherwise there is no such attribute.

    Examples
    --------
    >>> from isthmus.datasets import asia
    >>> from isthmus.sklearn import BayesianNetwork
    >>> import pandas as pd
    >>> table = pd.DataFrame(dict(asia(rows=1000)))
    >>> model = BayesianNetwork(target="dysp").fit(table)
    >>> model.predict(table.drop(columns="dysp")).shape
    (1000,)
    """

    def __init__(
        self,
        *,
        score_function: Score[Any, Any] | None = None,
        search: Search[Any] | None = None,
        knowledge: Knowledge | None = None,
        kinds: Mapping[str, Kind | str] | None = None,
        column_transform: Transform | None = None,
        missing: Missing | None = None,
        target: str | None = None,
        target_kind: Kind | str | None = None,
        unseen: Unseen = "missing",
        pseudo_count: float = 1.0,
        random_state: int = 0,
        time_limit: float | None = None,
    ) -> None:
        if BaseEstimator is object:
            raise MissingExtraError("scikit-learn", "sklearn", "isthmus.sklearn")
        self.score_function = score_function
        self.search = search
        self.knowledge = knowledge
        self.kinds = kinds
        self.column_transform = column_transform
        self.missing = missing
        self.target = target
        self.target_kind = target_kind
        self.unseen = unseen
        self.pseudo_count = pseudo_count
        self.random_state = random_state
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any = None) -> BayesianNetwork:
        """Learn graph and parameters.

        Parameters
        ----------
        X
            A table with names, or an array of shape (rows, columns).
        y
            The column to predict; None if it is one of ``X``, or if nothing is to be predicted.
        """
        if self.score_function is not None:
            check_score(self.score_function, "score_function")
        check_seed(self.random_state, "random_state")
        check_unseen(self.unseen)
        table = self._table(X, reset=True)
        kinds = dict(self.kinds or {})
        self.target_ = self.target
        if y is not None:
            self.target_ = _name_of(y, table)
            table[self.target_] = self._checked(y)
        if self.target_ is not None and self.target_ not in table:
            raise ArgumentError(
                f"target is {self.target_!r}; the columns are {list(table)[:10]}. Name one of them."
            )
        if self.target_ is not None and self.target_ not in kinds:
            declared = hasattr(getattr(y, "dtype", None), "categories")
            kinds |= self._kind_of(self.target_, table[self.target_], declared=declared)
        self.solution_ = learn(
            table,
            score=self.score_function,
            search=self.search,
            knowledge=self.knowledge,
            kinds=kinds,
            transform=self.column_transform,
            missing=self.missing,
            seed=self.random_state,
            time_limit=self.time_limit,
            progress=False,
        )
        self.network_ = self.solution_.fit(pseudo_count=self.pseudo_count)
        used = {v: table[v] for v in self.network_.dag.nodes if v not in self.network_.levels}
        self.writings_ = {
            v: w for v, c in used.items() if (w := _writing(c, zeros=True)) is not None
        }
        self.__dict__.pop("classes_", None)  # of an earlier fit
        self.predictor_ = self.network_
        if self.target_ is not None and self.target_ in self.network_.levels:
            self.classes_ = np.array(self.network_.levels[self.target_])
            filled = self._with_level(table)
            rows = {v: self._as_read(v, filled[v]) for v in self.network_.dag.nodes}
            column = read_column(self.network_.maps, self.target_, rows[self.target_])
            self._levels_seen = np.array([(column == level).sum() for level in self.classes_])
            self._ends = {v: _ends(rows[v]) for v in rows if v not in self.network_.levels}
            self.predictor_ = for_target(
                self.network_, self.solution_, rows, self.target_, self.pseudo_count
            )
        return self

    def _checked(self, y: Any) -> NDArray[Any]:
        """Return the column to predict after the checks of scikit-learn."""
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import column_or_1d

        values: NDArray[Any] = column_or_1d(y, warn=True)
        if values.dtype.kind == "O" and any(is_absent(v) for v in values):
            raise ValueError("Input y contains missing values (None or NaN). Drop these rows.")
        are_classes = values.dtype.kind in "OUSb" and _writing(values) is None
        if are_classes or self.target_kind == Kind.DISCRETE:
            check_classification_targets(values)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError("Input y contains NaN or infinity.")
        return values

    def _kind_of(self, name: str, values: Any, *, declared: bool) -> dict[str, Kind]:
        """How to read the column to predict; nothing if `learn` decides, with a note."""
        if self.target_kind is not None:
            return {name: as_kind(self.target_kind, "the target")}
        integers = None if self.score_function is None else self.score_function.kind
        array = np.asarray(values)
        if array.dtype.kind in "OUSTb":
            is_text = not declared and array.dtype.kind != "b" and integers is not Kind.DISCRETE
            writing = _writing(values) if is_text else None
            # Five or more: the rule for any column of numbers.
            if writing is None or len(set(array.tolist())) < NUMBERS:
                return {name: Kind.DISCRETE}
            values = writing.read(array.tolist())
        frame = Frame({name: values}, integers=integers, keep=None, missing=self.missing)
        if frame.reading()[name].reason == FEW_VALUES:
            return {}
        return {name: frame.schema()[name].kind}  # what is to be predicted is no identifier

    @property
    def dag_(self) -> DAG:
        """The learned graph."""
        self._check_fitted()
        return self.solution_.dag

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable level, or the expected value, of the target for each row."""
        table, target, rows = self._question(X)
        found: NDArray[Any] = self.predictor_.predict(table, target, **self._about_levels())
        return found if table else np.repeat(found, rows, axis=0)

    # As in scikit-learn, a regressor has no such method.
    @available_if(lambda self: self._is_discrete is not False)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the levels of a discrete target, ordered as `classes_`.

        Numbers beyond the least or the largest one of `fit` count as that one. In tables with
        numbers, `pseudo_count` rows with the shares of the levels count beside those of `fit`, so
        that no density makes a level impossible.
        """
        table, target, rows = self._question(X)
        assert not isinstance(self.predictor_, GaussianNetwork)
        found = self.predictor_.predict_probabilities(table, target, unseen=self.unseen)
        if isinstance(self.predictor_, MixedNetwork):
            n, weight = self._levels_seen.sum(), self.pseudo_count
            found = (n * found + weight * self._levels_seen / n) / (n + weight)
        return found if table else np.repeat(found, rows, axis=0)

    def score(self, X: Any, y: Any = None) -> float:
        """Return how well the network describes rows; higher is better.

        With ``y`` it is the accuracy of the predictions, or R² for a continuous target. Without,
        it is the log-likelihood per row.
        """
        from sklearn.metrics import accuracy_score, r2_score

        if y is not None:
            self._check_fitted()
            predicted = self.predict(X)
            measure = accuracy_score if hasattr(self, "classes_") else r2_score
            y = self._as_read(str(self.target_), y)
            if hasattr(self, "classes_"):
                y = read_column(self.network_.maps, str(self.target_), y)
            return float(measure(y, predicted))
        self._check_fitted()
        if self.target_ is not None and self.target_ not in self._table(X, reset=False):
            raise ArgumentError(f"The network predicts {self.target_!r}: give y to score.")
        return float(self._log_likelihoods(X).mean())

    @available_if(lambda self: getattr(self, "target_", self.target) is None)  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log-likelihood of each row; the lowest ones are the most unusual rows.

        An estimator that was fitted to a target has no such method.
        """
        return self._log_likelihoods(X)

    def _log_likelihoods(self, X: Any) -> NDArray[np.float64]:
        self._check_fitted()
        table = self._table(X, reset=False)
        table = {v: self._as_read(v, c) for v, c in table.items() if v in self.network_.dag.nodes}
        if any(is_absent(cell) for column in table.values() for cell in column.tolist()):
            raise ValueError(f"Input X contains missing values. {_IN_SCORE}")
        return log_likelihood(self.network_, table, per_row=True, unseen=self.unseen)

    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> dict[str, NDArray[Any]]:
        """Draw rows from the network, as columns by name.

        Parameters
        ----------
        n_samples
            Number of rows.
        random_state
            Random seed, an integer.
        """
        self._check_fitted()
        seed = check_seed(random_state, "random_state")
        rows: dict[str, NDArray[Any]] = self.network_.sample(n_samples, seed=seed)
        return rows

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)

    def _question(self, X: Any) -> tuple[dict[str, Any], str, int]:
        """Return the columns that tell about the target, the target, and the number of rows."""
        self._check_fitted()
        if self.target_ is None:
            raise ArgumentError(
                "There is no variable to predict. Call fit(X, y), or BayesianNetwork(target=name)."
            )
        if self.target_ not in self.network_.dag.nodes:
            raise ArgumentError(f"The target {self.target_!r} was left out of the network.")
        table = self._table(X, reset=False)
        rows = len(next(iter(table.values())))
        told = {v: self._as_read(v, c) for v, c in table.items() if v in self.network_.dag.nodes}
        if self.target_ in self.network_.levels:
            told = self._within(told)
        return told, self.target_, rows

    def _within(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return columns without values beyond those of `fit`, which would decide on a level.

        The logarithm of a density falls with the square of the distance.
        """
        ends = {v: own for v, own in self._ends.items() if own is not None and v in told}
        numbers = {v: told[v] for v in ends}
        network = self.network_
        read = {v: read_column(network.maps, v, c) for v, c in numbers.items()}
        warn_outside(getattr(network, "supports", {}), network.maps, read)
        return told | {v: np.clip(c, *ends[v]) for v, c in numbers.items()}

    def _as_read(self, name: str, column: Any) -> NDArray[Any]:
        """Return a column as `fit` has read it: text and ordered categories may be numbers."""
        values = np.asarray(column)
        if name in self.network_.levels or values.dtype.kind in "fiub":
            return values
        known = np.array([not is_absent(cell) for cell in values.tolist()], np.bool_)
        if not known.all():
            read = np.full(len(values), np.nan)
            part = column[known] if hasattr(column, "iloc") else values[known]
            read[known] = self._as_read(name, part) if known.any() else read[known]
            return read
        texts = [cell for cell in values.tolist() if isinstance(cell, str)]
        if texts and not _is_ordered(column):
            writing = self.writings_.get(name)
            numbers = texts[0] if writing is None else writing.read(values.astype(str).tolist())
            if isinstance(numbers, str):
                raise SchemaError(
                    f"Column {name!r} has the cell {numbers!r}, and fit has not read numbers that "
                    "are written like this. Give numbers, or write them as in the table of fit."
                )
            return numbers
        return Frame({name: column}, kinds={name: Kind.CONTINUOUS}).rows()[:, 0]

    def _about_levels(self) -> dict[str, Any]:
        """Return what a network with levels is told about new ones."""
        return {"unseen": self.unseen} if self.network_.levels else {}

    def _table(self, X: Any, *, reset: bool) -> dict[str, Any]:
        """Return the columns of a table or array after the checks of scikit-learn."""
        from sklearn.utils.validation import validate_data

        columns = list(getattr(X, "columns", ()))
        named = bool(columns) and all(isinstance(c, str) for c in columns)
        if not reset and named and self.target is not None and self._lacks_target(columns):
            # The target is what is asked for, so it may be missing.
            return self._with_level({c: X[c] for c in columns})
        for name in columns if named else ():
            _refuse_dates(name, X[name])
        try:
            array = validate_data(
                self,
                X,
                reset=reset,
                dtype=None,
                ensure_min_samples=2 if reset else 1,
                ensure_all_finite=not isinstance(self.missing, Missing),
            )
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            problem = str(error).splitlines()[0].rstrip(".")
            raise ValueError(f"{problem}. {_IN_FIT if reset else _IN_QUESTIONS}") from None
        # Columns are called as in fit, whether the rows of a prediction have names or not.
        names = [f"x{i}" for i in range(array.shape[1])]
        if reset:
            names = columns if named else names
        else:
            names = getattr(self, "feature_names_in_", names)
        if named:
            table = {str(n): X[c] for n, c in zip(names, columns, strict=True)}
        else:
            table = {str(n): _numbers(array[:, i]) for i, n in enumerate(names)}
        return table if reset else self._with_level(table)

    def _with_level(self, table: dict[str, Any]) -> dict[str, Any]:
        """Give missing values the level that they had in `fit`."""
        if not isinstance(self.missing, MissingAsLevel):
            return table
        level = self.missing.level
        return {n: _filled(np.asarray(column), level) for n, column in table.items()}

    def _lacks_target(self, columns: list[str]) -> bool:
        known = getattr(self, "feature_names_in_", ())
        return columns == [c for c in known if c != self.target]

    @property
    def _is_discrete(self) -> bool | None:
        """Whether the target is discrete; None if that is not known before `fit`."""
        if hasattr(self, "network_") and self.target_ is not None:
            return hasattr(self, "classes_")
        return None if self.target_kind is None else self.target_kind == Kind.DISCRETE

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        from sklearn.utils import ClassifierTags, RegressorTags

        # Scorers such as "roc_auc" ask a classifier for probabilities.
        is_discrete = self._is_discrete
        if is_discrete:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif is_discrete is False:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def _ends(column: NDArray[Any]) -> tuple[float, float] | None:
    """Return the least and the largest value of numbers; None if it has none."""
    if column.dtype.kind not in "fiu" or np.isnan(column).all():
        return None
    return float(np.nanmin(column)), float(np.nanmax(column))


def _name_of(y: Any, table: Mapping[str, Any]) -> str:
    name = getattr(y, "name", None)
    if isinstance(name, str) and name and name not in table:
        return name
    name = "target"
    while name in table:
        name += "_"
    return name


def _is_ordered(column: Any) -> bool:
    return bool(getattr(getattr(column, "dtype", None), "ordered", False))


def _writing(column: Any, *, zeros: bool = False) -> Writing | None:
    """How the numbers of a column of text are written; None if it holds no such numbers."""
    if _is_ordered(column):
        return None
    cells = np.asarray(column)
    if cells.dtype.kind not in "OUST":
        return None
    different = {cell for cell in cells.tolist() if not is_absent(cell)}
    if not different or not all(isinstance(cell, str) for cell in different):
        return None
    return writing_of(sorted(different), zeros=zeros)


def _refuse_dates(name: str, column: Any) -> None:
    """Raise for dates and durations, which NumPy cannot put beside numbers."""
    dtype = np.asarray(column).dtype
    if dtype.kind in "mM":
        raise SchemaError(
            f"Column {name!r} has the type {dtype}, which an estimator cannot read. Dates and "
            "times are not variables by themselves: derive a number (days since an event, hour "
            "of the day) or a category (weekday, season), or leave the column out."
        )


def _filled(column: NDArray[Any], level: str) -> NDArray[Any]:
    """Replace None and NaN by a level."""
    absent = np.array([is_absent(v) for v in column.tolist()], dtype=np.bool_)
    return np.where(absent, level, column.astype(object)) if absent.any() else column


def _numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of objects as numbers, if that is what they are."""
    if column.dtype.kind != "O" or any(isinstance(cell, str) for cell in column):
        return column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column

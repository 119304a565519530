#include "bindings.hpp"
#include "scoring/child_scores.hpp"
#include "scoring/curve_score.hpp"
#include "scoring/foreign_score.hpp"
#include "scoring/gaussian_block_score.hpp"
#include "scoring/gaussian_score.hpp"
#include "scoring/penalised_score.hpp"
#include "scoring/prior_score.hpp"
#include "scoring/python_score.hpp"

namespace isthmus {

namespace {

/// The core trusts its callers; Python is not among those.
void check_family(const LocalScore& score, Variable child, Variables parents,
                  Variables candidates) {
    const auto size = static_cast<Variable>(score.size());
    const auto outside = [size](Variable v) { return v < 0 || v >= size; };
    if (outside(child) || std::ranges::any_of(parents, outside) ||
        std::ranges::any_of(candidates, outside)) {
        throw nb::index_error("there is no such variable");
    }
    // Room and tables of scores end at one parent set of all variables.
    if (parents.size() >= score.size()) throw nb::value_error("there are more parents than variables");
}

Given<double, 1> extensions(const LocalScore& score, Variable child, const Array<Variable, 1>& parents,
                    const Array<Variable, 1>& candidates) {
    check_family(score, child, to_variables(parents), to_variables(candidates));
    std::vector<double> out(candidates.size() + 1);
    {
        const nb::gil_scoped_release no_gil;
        auto watch = Watch::unlimited(&check_signals);
        score.extensions(child, to_variables(parents), to_variables(candidates), out, watch);
    }
    return give(std::move(out));
}

Given<double, 1> reductions(const LocalScore& score, Variable child, const Array<Variable, 1>& parents,
                    std::size_t first) {
    check_family(score, child, to_variables(parents), {});
    if (first > parents.size()) throw nb::index_error("there is no such parent");
    std::vector<double> out(parents.size() - first);
    if (!out.empty()) {
        const nb::gil_scoped_release no_gil;
        auto watch = Watch::unlimited(&check_signals);
        score.reductions(child, to_variables(parents), first, out, watch);
    }
    return give(std::move(out));
}

// The garbage collector must see through C++ objects that own Python ones: a score in Python is
// often a method of the very object that holds the run.

int traverse_python_score(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PythonScore>(self)->function().ptr());
    return 0;
}

int clear_python_score(PyObject* self) {
    nb::inst_ptr<PythonScore>(self)->forget_function();
    return 0;
}

PyType_Slot python_score_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse_python_score)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear_python_score)},
    {0, nullptr}};

}  // namespace

void bind_scoring(nb::module_& m) {
    nb::exception<ScoreFailed>(m, "ScoreFailed", PyExc_RuntimeError);

    nb::class_<LocalScore>(m, "LocalScore", "A decomposable objective to be maximised.")
        .def_prop_ro("size", &LocalScore::size, "Number of variables.")
        .def("extensions", &extensions, "child"_a, "parents"_a.noconvert(), "candidates"_a.noconvert(),
             "Score ``parents`` and each of its one-element extensions.")
        .def("reductions", &reductions, "child"_a, "parents"_a.noconvert(), "first"_a = 0,
             "Score ``parents`` without each one from ``first`` on.")
        .def_prop_ro(
            "handle", [](const LocalScore& score) { return foreign_handle(score); },
            "Address of a C function and of its data, valid as long as this object.");

    nb::class_<GaussianScore, LocalScore>(m, "GaussianScore")
        .def(
            "__init__",
            [](GaussianScore* self, const Array<double, 2>& correlation,
               const Array<double, 1>& log_scale, const Array<double, 1>& constant,
               const Array<double, 1>& log_variance, const Array<double, 1>& log_determinant,
               const Array<double, 1>& squares, double tolerance) {
                std::construct_at(self, to_matrix(correlation), to_vector(log_scale),
                                  GaussianWeights{.constant = to_vector(constant),
                                                  .log_variance = to_vector(log_variance),
                                                  .log_determinant = to_vector(log_determinant)},
                                  to_vector(squares), tolerance);
            },
            nb::kw_only(), "correlation"_a, "log_scale"_a, "constant"_a, "log_variance"_a,
            "log_determinant"_a, "squares"_a, "tolerance"_a)
        .def(
            "__init__",
            [](GaussianScore* self, const Array<double, 2>& whole, const Array<double, 2>& removed,
               const Array<double, 1>& spread, const Array<double, 1>& log_scale,
               const Array<double, 1>& constant, const Array<double, 1>& log_variance,
               const Array<double, 1>& log_determinant, const Array<double, 1>& squares,
               double tolerance) {
                if (whole.shape(0) != spread.size() || whole.shape(1) != spread.size()) {
                    throw std::invalid_argument{"the correlations need a row for each variable"};
                }
                std::construct_at(
                    self, Correlations{whole.data(), to_matrix(removed), to_vector(spread)},
                    to_vector(log_scale),
                    GaussianWeights{.constant = to_vector(constant),
                                    .log_variance = to_vector(log_variance),
                                    .log_determinant = to_vector(log_determinant)},
                    to_vector(squares), tolerance);
            },
            nb::kw_only(), "whole"_a.noconvert(), "removed"_a, "spread"_a, "log_scale"_a,
            "constant"_a, "log_variance"_a, "log_determinant"_a, "squares"_a, "tolerance"_a,
            nb::keep_alive<1, 2>());

    nb::class_<GaussianBlockScore, LocalScore>(m, "GaussianBlockScore")
        .def(
            "__init__",
            [](GaussianBlockScore* self, const Array<double, 2>& correlation,
               const Array<Variable, 1>& starts, const Array<double, 1>& base, double half_n,
               double penalty, double tolerance) {
                std::construct_at(self, to_matrix(correlation), to_vector(starts),
                                  to_vector(base), half_n, penalty, tolerance);
            },
            nb::kw_only(), "correlation"_a, "starts"_a, "base"_a, "half_n"_a, "penalty"_a,
            "tolerance"_a);

    nb::class_<CurveScore, LocalScore>(m, "CurveScore")
        .def(
            "__init__",
            [](CurveScore* self, const Array<double, 2>& correlation,
               const Array<Variable, 1>& starts, const Array<Variable, 1>& own,
               const Array<Variable, 2>& degrees, const Array<double, 1>& base,
               double coefficient_price, const Array<double, 1>& parent_prices,
               const Array<double, 1>& column_prices, const Array<bool, 2>& allowed, double half_n,
               double tolerance) {
                const auto size = degrees.shape(0) * degrees.shape(1);
                std::construct_at(
                    self, to_matrix(correlation),
                    CurveColumns{.starts = to_vector(starts),
                                 .own = to_vector(own),
                                 .degrees = {degrees.shape(1),
                                             {degrees.data(), degrees.data() + size}}},
                    to_vector(base),
                    CurvePrices{.coefficient = coefficient_price,
                                .parents = to_vector(parent_prices),
                                .columns = to_vector(column_prices)},
                    to_flags(allowed), half_n, tolerance);
            },
            nb::kw_only(), "correlation"_a, "starts"_a, "own"_a, "degrees"_a, "base"_a,
            "coefficient_price"_a, "parent_prices"_a, "column_prices"_a, "allowed"_a, "half_n"_a,
            "tolerance"_a)
        .def(
            "degrees",
            [](const CurveScore& score, Variable child, const Array<Variable, 1>& parents) {
                check_family(score, child, to_variables(parents), {});
                return give(score.degrees(child, to_variables(parents)));
            },
            "child"_a, "parents"_a.noconvert(), "Degree of the functions of each parent.")
        .def(
            "without_functions",
            [](const CurveScore& score, Variable child, const Array<Variable, 1>& parents,
               Variable straight) {
                check_family(score, child, to_variables(parents), {});
                return score.without_functions(child, to_variables(parents), straight);
            },
            "child"_a, "parents"_a.noconvert(), "straight"_a,
            "Score of a family in which one parent is held to its line.");

    nb::class_<ForeignScore, LocalScore>(m, "ForeignScore")
        .def(
            "__init__",
            [](ForeignScore* self, std::size_t size, std::uintptr_t function, std::int64_t data,
               const nb::object& /*keep*/) { std::construct_at(self, size, function, data); },
            "size"_a, "function"_a, "data"_a, "keep"_a.none() = nb::none(), nb::keep_alive<1, 5>(),
            "Wrap a C function; ``keep`` lives as long as this object.");

    nb::class_<PenalisedScore, LocalScore>(m, "PenalisedScore")
        .def(
            "__init__",
            [](PenalisedScore* self, const LocalScore& inner, const Array<double, 1>& prices,
               double factor) { std::construct_at(self, inner, to_vector(prices), factor); },
            "inner"_a, "prices"_a, "factor"_a = 1.0, nb::keep_alive<1, 2>());

    nb::class_<PriorScore, LocalScore>(m, "PriorScore")
        .def(
            "__init__",
            [](PriorScore* self, const LocalScore& inner, const Array<double, 1>& weights) {
                std::construct_at(self, inner, to_vector(weights));
            },
            "inner"_a, "weights"_a, nb::keep_alive<1, 2>());

    nb::class_<ChildScores, LocalScore>(m, "ChildScores")
        .def(
            "__init__",
            [](ChildScores* self, const nb::tuple& scores) {
                std::vector<const LocalScore*> given;
                for (const nb::handle score : scores) {
                    given.push_back(&nb::cast<const LocalScore&>(score));
                }
                std::construct_at(self, std::move(given));
            },
            "scores"_a, nb::keep_alive<1, 2>(),
            nb::sig("def __init__(self, scores: tuple[LocalScore, ...]) -> None"));

    nb::class_<PythonScore, LocalScore>(m, "PythonScore", nb::type_slots(python_score_slots))
        .def(nb::init<std::size_t, nb::object>(), "size"_a, "function"_a,
             nb::sig("def __init__(self, size: int, "
                     "function: collections.abc.Callable[[int, tuple[int, ...]], "
                     "float | types.EllipsisType]) -> None"));
}

}  // namespace isthmus

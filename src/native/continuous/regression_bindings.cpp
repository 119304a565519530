#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "bindings.hpp"
#include "continuous/parts.hpp"
#include "continuous/paths.hpp"
#include "continuous/regression.hpp"
#include "continuous/shrinking_regression.hpp"

namespace isthmus {

namespace {

Matrix<std::uint8_t> square_flags(const Array<bool, 2>& array) {
    if (array.shape(0) != array.shape(1)) {
        throw std::invalid_argument{"edges must be a square matrix"};
    }
    return to_flags(array);
}

Given<bool, 2> reachable(const Array<bool, 2>& edges) {
    const auto graph = square_flags(edges);
    const std::size_t d = graph.columns();
    ZeroedArray<bool> values{d * d};
    {
        const nb::gil_scoped_release no_gil;
        auto watch = Watch::unlimited(&check_signals);
        const auto paths = paths_of(graph, watch);
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j < d; ++j) values.data()[i * d + j] = paths.reaches(i, j);
        }
    }
    return give<2>(std::move(values), {d, d});
}

std::pair<std::vector<bool>, std::vector<Variable>> acyclic(const Array<bool, 2>& required,
                                                            const Array<Variable, 1>& sources,
                                                            const Array<Variable, 1>& targets) {
    const auto graph = square_flags(required);
    if (sources.size() != targets.size()) {
        throw std::invalid_argument{"every edge needs a source and a target"};
    }
    const auto exists = [&](Variable v) {
        return v >= 0 && static_cast<std::size_t>(v) < graph.columns();
    };
    if (!std::ranges::all_of(to_variables(sources), exists) ||
        !std::ranges::all_of(to_variables(targets), exists)) {
        throw std::invalid_argument{"an edge names a variable that does not exist"};
    }
    const nb::gil_scoped_release no_gil;
    auto watch = Watch::unlimited(&check_signals);
    auto result = acyclic_edges(graph, to_variables(sources), to_variables(targets), watch);
    return {{result.kept.begin(), result.kept.end()}, std::move(result.order)};
}

/// The regression with the array of moments that it reads.
struct HeldRegression {
    HeldRegression(Array<double, 2> array, std::size_t child, std::vector<Variable> parents,
                   std::vector<Variable> removals, double tolerance)
        : moments{std::move(array)},
          regression{{moments.data(), moments.size()},
                     moments.shape(0),
                     child,
                     std::move(parents),
                     std::move(removals),
                     tolerance} {}

    Array<double, 2> moments;
    ShrinkingRegression regression;
};

void bind_shrinking_regression(nb::module_& m) {
    nb::class_<HeldRegression>(m, "ShrinkingRegression")
        .def(
            "__init__",
            [](HeldRegression* self, Array<double, 2> moments, std::size_t child,
               const Array<Variable, 1>& parents, const Array<Variable, 1>& removals,
               double tolerance) {
                if (moments.shape(0) != moments.shape(1)) {
                    throw std::invalid_argument{"moments must be a square matrix"};
                }
                std::construct_at(self, std::move(moments), child, to_vector(parents),
                                  to_vector(removals), tolerance);
            },
            nb::arg("moments").noconvert(), "child"_a, "parents"_a, "removals"_a, "tolerance"_a)
        .def(
            "step",
            [](HeldRegression& self, double seconds) {
                const auto claim = self.regression.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.regression.step(watch);
            },
            "seconds"_a = 0.01, "Work for so long at most; return whether all are removed.")
        .def("shares",
             [](HeldRegression& self) {
                 const auto claim = self.regression.claim();
                 const auto values = self.regression.shares();
                 return give(std::vector<double>{values.begin(), values.end()});
             })
        .def("weights", [](HeldRegression& self) {
            const auto claim = self.regression.claim();
            const auto values = self.regression.weights();
            return give(std::vector<double>{values.begin(), values.end()});
        });
}

std::tuple<double, Given<double, 1>> regression(const Array<double, 2>& moments, std::size_t child,
                                        const Array<Variable, 1>& parents, double tolerance) {
    const std::size_t d = moments.shape(0);
    if (moments.shape(1) != d) throw std::invalid_argument{"moments must be a square matrix"};
    if (child >= d) throw std::invalid_argument{"there is no such child"};
    for (std::size_t a = 0; a < parents.size(); ++a) {
        if (parents.data()[a] < 0 || static_cast<std::size_t>(parents.data()[a]) >= d) {
            throw std::invalid_argument{"there is no such parent"};
        }
    }
    Regression result;
    {
        const nb::gil_scoped_release no_gil;
        auto watch = Watch::unlimited(&check_signals);
        result = regress({moments.data(), moments.size()}, d, child, to_variables(parents),
                         tolerance, watch);
    }
    return {result.share, give(std::move(result.weights))};
}

}  // namespace

void bind_regressions(nb::module_& m) {
    bind_shrinking_regression(m);
    m.def("reachable", &reachable, "edges"_a,
          "Return for a graph [from, to] which variable reaches which along a path.");
    m.def("acyclic_edges", &acyclic, nb::kw_only(), "required"_a, "sources"_a, "targets"_a,
          "Tell which edges close no cycle with those before, and order variables along them.");
    m.def("regression", &regression, nb::arg("moments").noconvert(), "child"_a, "parents"_a,
          "tolerance"_a,
          "Return the share of the child's variance that its parents leave, and their weights.");
}

}  // namespace isthmus

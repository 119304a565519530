#include "bindings.hpp"

#include <stdexcept>
#include <string>

#include "continuous/barrier_sweeps.hpp"
#include "continuous/group_descent.hpp"
#include "continuous/ordered_lassos.hpp"
#include "continuous/parts.hpp"

namespace isthmus {

namespace {

/// A square matrix, also if it has no rows: then `Matrix` does not know that it has no columns.
Matrix<double> to_square(const Array<double, 2>& array, const char* name) {
    if (array.shape(0) != array.shape(1)) {
        throw std::invalid_argument{std::string{name} + " must be a square matrix"};
    }
    return to_matrix(array);
}

Given<double, 2> to_new_matrix(const Matrix<double>& matrix) {
    std::vector<double> values;
    values.reserve(matrix.rows() * matrix.columns());
    for (std::size_t i = 0; i < matrix.rows(); ++i) {
        values.insert(values.end(), matrix.row(i).begin(), matrix.row(i).end());
    }
    return give<2>(std::move(values), {matrix.rows(), matrix.columns()});
}

void bind_barrier(nb::module_& m) {
    nb::class_<BarrierSweeps>(m, "BarrierSweeps")
        .def(
            "__init__",
            [](BarrierSweeps* self, const Array<double, 2>& moments, const Array<bool, 2>& open,
               double radius) {
                std::construct_at(self, to_square(moments, "moments"), to_flags(open), radius);
            },
            "moments"_a, nb::kw_only(), "open"_a, "radius"_a)
        .def(
            "begin",
            [](BarrierSweeps& self, const Array<Variable, 1>& turns, const Array<double, 1>& scale,
               const Array<double, 2>& penalty, double barrier, double tolerance) {
                const auto claim = self.claim();
                self.begin({.turns = to_vector(turns),
                            .scale = to_vector(scale),
                            .penalty = to_square(penalty, "penalty"),
                            .barrier = barrier,
                            .tolerance = tolerance});
            },
            "turns"_a, nb::kw_only(), "scale"_a, "penalty"_a, "barrier"_a, "tolerance"_a,
            "Begin a sweep over the columns in these turns.")
        .def(
            "step",
            [](BarrierSweeps& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Work for so long at most; return whether the sweep is finished.")
        .def(
            "incoming",
            [](BarrierSweeps& self) {
                const auto claim = self.claim();
                return to_new_matrix(self.incoming());
            },
            "Copy the weights, [to, from].")
        .def(
            "inverse_error",
            [](BarrierSweeps& self) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                return self.inverse_error();
            })
        .def(
            "set_inverse",
            [](BarrierSweeps& self, const Array<double, 2>& inverse) {
                const auto claim = self.claim();
                self.set_inverse(to_square(inverse, "the inverse"));
            },
            "inverse"_a)
        .def_prop_ro("done", &BarrierSweeps::done)
        .def_prop_ro("moved", &BarrierSweeps::moved);
}

void bind_orders_of_lassos(nb::module_& m) {
    nb::class_<OrderedLassos>(m, "OrderedLassos")
        .def(
            "__init__",
            [](OrderedLassos* self, const Array<double, 2>& moments, const Array<double, 1>& scale,
               const Array<double, 2>& penalty, const Array<bool, 2>& open,
               const Array<bool, 2>& required, double tolerance) {
                std::construct_at(self, LassoProblem{.moments = to_square(moments, "moments"),
                                                     .scale = to_vector(scale),
                                                     .penalty = to_square(penalty, "penalty"),
                                                     .open = to_flags(open),
                                                     .required = to_flags(required),
                                                     .tolerance = tolerance});
            },
            "moments"_a, nb::kw_only(), "scale"_a, "penalty"_a, "open"_a, "required"_a,
            "tolerance"_a)
        .def(
            "start",
            [](OrderedLassos& self, const Array<Variable, 1>& order,
               const Array<double, 2>& incoming) {
                const auto claim = self.claim();
                self.start(to_variables(order), to_square(incoming, "incoming"));
            },
            "order"_a, "incoming"_a)
        .def(
            "sweep",
            [](OrderedLassos& self, const Array<Variable, 1>& turns, double least, double worth) {
                const auto claim = self.claim();
                self.sweep(to_variables(turns), least, worth);
            },
            "turns"_a, nb::kw_only(), "least"_a, "worth"_a)
        .def(
            "step",
            [](OrderedLassos& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Work for so long at most; return whether nothing is left to do.")
        .def("order",
             [](OrderedLassos& self) {
                 const auto claim = self.claim();
                 const auto& order = self.order().order();
                 return std::vector<Variable>{order.begin(), order.end()};
             })
        .def(
            "incoming",
            [](OrderedLassos& self) {
                const auto claim = self.claim();
                const std::size_t d = self.order().size();
                Matrix<double> weights{d, d};
                for (std::size_t j = 0; j < d; ++j) {
                    std::ranges::copy(self.order().column(j).weights, weights.row(j).begin());
                }
                return to_new_matrix(weights);
            },
            "Copy the weights, [to, from].")
        .def("values",
             [](OrderedLassos& self) {
                 const auto claim = self.claim();
                 std::vector<double> values;
                 for (std::size_t j = 0; j < self.order().size(); ++j) {
                     values.push_back(self.order().column(j).value);
                 }
                 return give(std::move(values));
             })
        .def("stirred",
             [](OrderedLassos& self) {
                 const auto claim = self.claim();
                 std::vector<Variable> variables;
                 for (std::size_t i = 0; i < self.stirred().size(); ++i) {
                     if (self.stirred()[i] != 0) variables.push_back(static_cast<Variable>(i));
                 }
                 return variables;
             })
        .def_prop_ro("settled", &OrderedLassos::settled)
        .def_prop_ro("moved", &OrderedLassos::moved)
        .def_prop_ro("fell", &OrderedLassos::fell);
}

/// The descent with the array of features that it reads.
struct HeldDescent {
    HeldDescent(Array<double, 2> array, std::vector<Variable> starts, std::vector<double> steeps)
        : features{std::move(array)},
          descent{{features.data(), features.size()}, std::move(starts), std::move(steeps)} {}

    Array<double, 2> features;
    GroupDescent descent;
};

void bind_descent(nb::module_& m) {
    nb::class_<HeldDescent>(m, "GroupDescent")
        .def(
            "__init__",
            [](HeldDescent* self, Array<double, 2> features, const Array<Variable, 1>& starts,
               const Array<double, 1>& steeps) {
                if (features.shape(0) != features.shape(1)) {
                    throw std::invalid_argument{"features must be a square matrix"};
                }
                std::construct_at(self, std::move(features), to_vector(starts), to_vector(steeps));
            },
            // Features may take hundreds of megabytes: they are not converted, and not copied.
            nb::arg("features").noconvert(), nb::kw_only(), "starts"_a, "steeps"_a)
        .def(
            "begin",
            [](HeldDescent& self, const Array<double, 1>& coefficients,
               const Array<double, 1>& cross, const Array<double, 1>& penalties,
               const Array<Variable, 1>& causes, double tolerance, std::size_t limit) {
                const auto claim = self.descent.claim();
                self.descent.begin({.cross = to_vector(cross),
                                    .penalties = to_vector(penalties),
                                    .causes = to_vector(causes),
                                    .tolerance = tolerance,
                                    .limit = limit},
                                   to_vector(coefficients));
            },
            "coefficients"_a, nb::kw_only(), "cross"_a, "penalties"_a, "causes"_a, "tolerance"_a,
            "limit"_a, "Start from these coefficients.")
        .def(
            "step",
            [](HeldDescent& self, double seconds) {
                const auto claim = self.descent.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.descent.step(watch);
            },
            "seconds"_a = 0.01, "Work for so long at most; return whether the end is reached.")
        .def(
            "coefficients",
            [](HeldDescent& self) {
                const auto claim = self.descent.claim();
                const auto values = self.descent.coefficients();
                return give(std::vector<double>{values.begin(), values.end()});
            },
            "Copy the coefficients reached.")
        .def_prop_ro("sweeps", [](const HeldDescent& self) { return self.descent.sweeps(); });
}

}  // namespace

void bind_continuous(nb::module_& m) {
    bind_barrier(m);
    bind_descent(m);
    bind_orders_of_lassos(m);
    bind_regressions(m);
}

}  // namespace isthmus

#include "bindings.hpp"
#include "screened/screened_order.hpp"

namespace isthmus {

namespace {

/// Lists of different lengths as one array, and where each begins.
template <class T, class Each>
auto in_one(std::size_t count, Each each) {
    std::vector<std::int64_t> starts{0};
    std::vector<T> values;
    for (std::size_t v = 0; v < count; ++v) {
        const std::vector<T> own = each(v);
        values.insert(values.end(), own.begin(), own.end());
        starts.push_back(static_cast<std::int64_t>(values.size()));
    }
    return std::pair{give(std::move(starts)), give(std::move(values))};
}

}  // namespace

void bind_screened(nb::module_& m) {
    nb::class_<ScreenedOrder>(m, "ScreenedOrder")
        .def(
            "__init__",
            [](ScreenedOrder* self, std::size_t variables, const Array<double, 1>& constant,
               double factor, double tolerance, std::optional<std::size_t> max_parents) {
                std::construct_at(self, variables,
                                  GaussianCriterion{.constant = to_vector(constant),
                                                    .factor = factor,
                                                    .tolerance = tolerance,
                                                    .max_parents = max_parents.value_or(variables)});
            },
            "variables"_a, nb::kw_only(), "constant"_a.noconvert(), "factor"_a, "tolerance"_a,
            "max_parents"_a.none())
        .def(
            "__init__",
            [](ScreenedOrder* self, std::shared_ptr<const LocalScore> score,
               const Array<Variable, 1>& names, std::optional<std::size_t> max_parents) {
                const std::size_t most = max_parents.value_or(names.size());
                std::construct_at(self, std::move(score), to_vector(names), most);
            },
            "score"_a, nb::kw_only(), "names"_a.noconvert(), "max_parents"_a.none())
        .def(
            "set_partners",
            [](ScreenedOrder& self, std::size_t variable, const Array<std::uint32_t, 1>& partners,
               const std::optional<Array<double, 2>>& correlation, const Array<bool, 1>& allowed,
               const Array<std::uint16_t, 1>& required) {
                const auto claim = self.claim();
                std::vector<double> given;
                if (correlation) given.assign(correlation->data(), correlation->data() + correlation->size());
                self.set_partners(variable, to_vector(partners), std::move(given),
                                  {allowed.data(), allowed.data() + allowed.size()},
                                  to_vector(required));
            },
            "variable"_a, "partners"_a.noconvert(), "correlation"_a.noconvert().none(),
            "allowed"_a.noconvert(), "required"_a.noconvert())
        .def(
            "start",
            [](ScreenedOrder& self, const Array<Variable, 1>& order) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                self.start(to_variables(order));
            },
            "order"_a.noconvert())
        .def(
            "settle",
            [](ScreenedOrder& self, const Array<Variable, 1>& changed) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                self.settle(to_variables(changed));
            },
            "changed"_a.noconvert())
        .def(
            "step",
            [](ScreenedOrder& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a)
        .def_prop_ro("score", &ScreenedOrder::score)
        .def("parents",
             [](const ScreenedOrder& self) {
                 return in_one<Variable>(self.size(),
                                         [&](std::size_t v) { return self.parents(v); });
             })
        .def("coefficients", [](const ScreenedOrder& self) {
            return in_one<double>(self.size(), [&](std::size_t v) { return self.coefficients(v); });
        });
}

}  // namespace isthmus

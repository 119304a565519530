#include "bindings.hpp"

#include "arrays.hpp"
#include "exact/table_builder.hpp"

namespace isthmus {

namespace {

ScoreBound to_bound(const Array<double, 2>& top, const Array<double, 2>& weight,
                    const Array<double, 1>& scale, const Array<double, 1>& levels,
                    const Array<double, 1>& factor, std::shared_ptr<const LocalScore> support,
                    const Array<double, 3>& gain) {
    const std::size_t d = levels.size();
    if (gain.size() != 0 && (gain.shape(0) != d || gain.shape(2) != d ||
                             (gain.shape(1) != d && gain.shape(1) != 1))) {
        throw nb::value_error("gain must be of shape (d, d, d), (d, 1, d), or empty");
    }
    return ScoreBound{{.top = to_matrix(top),
                       .weight = to_matrix(weight),
                       .scale = to_vector(scale),
                       .levels = to_vector(levels),
                       .factor = to_vector(factor),
                       .support = std::move(support),
                       .gain = {gain.data(), gain.data() + gain.size()}}};
}

int traverse_builder(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        Py_VISIT(nb::find(*nb::inst_ptr<TableBuilder>(self)->problem().score).ptr());
    }
    return 0;
}

PyType_Slot builder_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_builder)},
                               {0, nullptr}};

void construct_builder(TableBuilder* self, std::shared_ptr<const LocalScore> score,
                       std::shared_ptr<const ScoreBound> bound, const Array<bool, 2>& required,
                       const Array<bool, 2>& forbidden, std::optional<std::size_t> max_parents,
                       double slack, const std::optional<Array<Variable, 1>>& children,
                       std::optional<std::size_t> quota, std::size_t jobs) {
    const std::size_t d = required.shape(0);
    if (!(slack >= 0.0)) throw nb::value_error("the slack must not be negative");
    if (!bound) bound = std::make_shared<const ScoreBound>(ScoreBound::none(d));
    std::vector<Variable> chosen;
    if (children) {
        chosen = to_vector(*children);
    } else {
        for (std::size_t v = 0; v < d; ++v) chosen.push_back(static_cast<Variable>(v));
    }
    std::construct_at(
        self,
        TableProblem{std::move(score), std::move(bound),
                     Rules{to_flags(required), to_flags(forbidden), max_parents.value_or(d)},
                     slack, quota},
        std::move(chosen), jobs);
}

nb::tuple table_of(TableBuilder& self) {
    const auto claim = self.claim();
    TableBuilder::Table table;
    {
        const nb::gil_scoped_release no_gil;
        auto watch = Watch::unlimited(&check_signals);
        table = self.table(watch);
    }
    const std::size_t lines = table.scores.size();
    const std::size_t words = words_for(self.problem().size());
    return nb::make_tuple(give(std::move(table.starts)),
                          give<2>(std::move(table.sets), {lines, words}),
                          give(std::move(table.scores)));
}

void bind_builder(nb::module_& m) {
    nb::class_<ScoreBound>(m, "ScoreBound",
                           "An upper bound on the score of every superset of a parent set.")
        .def(
            "__init__",
            [](ScoreBound* self, const Array<double, 2>& top, const Array<double, 2>& weight,
               const Array<double, 1>& scale, const Array<double, 1>& levels,
               const Array<double, 1>& factor, std::shared_ptr<const LocalScore> support,
               const Array<double, 3>& gain) {
                std::construct_at(self, to_bound(top, weight, scale, levels, factor,
                                                 std::move(support), gain));
            },
            nb::kw_only(), "top"_a, "weight"_a, "scale"_a, "levels"_a, "factor"_a,
            "support"_a.none(), "gain"_a)
        .def_prop_ro("size", &ScoreBound::size, "Number of variables.");

    nb::class_<TableBuilder>(m, "TableBuilder", nb::type_slots(builder_slots),
                             "Builds a score table, one time slice at a time.")
        .def("__init__", &construct_builder, "score"_a, "bound"_a.none(), nb::kw_only(),
             "required"_a, "forbidden"_a, "max_parents"_a.none(), "slack"_a,
             "children"_a.none() = nb::none(), "quota"_a.none() = nb::none(), "jobs"_a = 1)
        .def(
            "step",
            [](TableBuilder& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Go on for so long at most; return whether all children are done.")
        .def(
            "hurry",
            [](TableBuilder& self) {
                const auto claim = self.claim();
                self.hurry();
            },
            "Turn the children that are not done to promising sets.")
        .def(
            "skip",
            [](TableBuilder& self) {
                const auto claim = self.claim();
                self.skip();
            },
            "End the children under way with what is there.")
        .def(
            "close",
            [](TableBuilder& self) {
                const auto claim = self.claim();
                self.close();
            },
            "End the listing; further steps complete the table with small sets.")
        .def("table", &table_of, "Return starts, sets and scores; the builder must be ready.")
        .def_prop_ro("done", &TableBuilder::done)
        .def_prop_ro("ready", &TableBuilder::ready)
        .def_prop_ro("complete", &TableBuilder::complete)
        .def_prop_ro("finished", &TableBuilder::finished)
        .def_prop_ro("children", &TableBuilder::children)
        .def_prop_ro("scored", &TableBuilder::scored);
}

}  // namespace

void bind_exact(nb::module_& m) { bind_builder(m); }

}  // namespace isthmus

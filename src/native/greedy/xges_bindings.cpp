#include "bindings.hpp"
#include "greedy/xges_run.hpp"

namespace isthmus {

namespace {

int traverse_run(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::find(nb::inst_ptr<XgesRun>(self)->local_score()).ptr());
    return 0;
}

PyType_Slot run_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_run)}, {0, nullptr}};

}  // namespace

void bind_xges(nb::module_& m) {
    nb::class_<XgesRun>(m, "XgesRun", nb::type_slots(run_slots))
        .def(
            "__init__",
            [](XgesRun* self, std::shared_ptr<const LocalScore> score,
               const Array<bool, 2>& required, const Array<bool, 2>& forbidden,
               std::optional<std::size_t> max_parents, bool extended) {
                ClassRules rules{to_flags(required), to_flags(forbidden),
                                 max_parents.value_or(required.shape(0))};
                std::construct_at(self, std::move(score), std::move(rules), extended);
            },
            "score"_a, nb::kw_only(), "required"_a, "forbidden"_a, "max_parents"_a.none(),
            "extended"_a)
        .def(
            "step",
            [](XgesRun& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Work for so long at most; return whether the search has ended.")
        .def(
            "best",
            [](XgesRun& self) {
                const auto claim = self.claim();
                XgesRun::Best best;
                {
                    const nb::gil_scoped_release no_gil;
                    auto watch = Watch::unlimited(&check_signals);
                    best = self.best(watch);
                }
                return std::pair{std::move(best.parents), best.score};
            },
            "Parents of each variable in a member of the best class so far, and its score.")
        .def_prop_ro("finished", &XgesRun::finished)
        .def_prop_ro("nodes", &XgesRun::nodes)
        .def_prop_ro("changes", &XgesRun::changes)
        .def_prop_ro("trials_left", &XgesRun::trials_left)
        .def_prop_ro("evaluations", &XgesRun::evaluations)
        .def_prop_ro("guarded", &XgesRun::guarded)
        .def_prop_ro("score", &XgesRun::score);
}

}  // namespace isthmus

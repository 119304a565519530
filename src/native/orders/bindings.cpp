#include <deque>

#include "bindings.hpp"
#include "core/pool.hpp"
#include "orders/boss_run.hpp"

namespace isthmus {

namespace {

int traverse_run(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::find(nb::inst_ptr<BossRun>(self)->local_score()).ptr());
    return 0;
}

void step_together(const std::vector<BossRun*>& runs, double seconds, std::size_t jobs) {
    std::deque<InUse::Guard> claims;
    for (BossRun* run : runs) {
        if (run == nullptr) throw nb::type_error("None is not a run");
        claims.emplace_back(run->in_use());
    }
    const nb::gil_scoped_release no_gil;
    auto watch = watch_for(seconds);
    Pool{jobs}.run(runs.size(), watch,
                   [&](std::size_t i, Watch& own) { (void)runs[i]->step(own); });
}

PyType_Slot run_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_run)}, {0, nullptr}};

}  // namespace

void bind_orders(nb::module_& m) {
    nb::class_<BossRun> run(m, "BossRun", nb::type_slots(run_slots));
    nb::enum_<BossRun::Stage>(run, "Stage")
        .value("WANTS_ORDER", BossRun::Stage::wants_order)
        .value("SETTLING", BossRun::Stage::settling)
        .value("WANTS_TURNS", BossRun::Stage::wants_turns)
        .value("SWEEPING", BossRun::Stage::sweeping);
    run.def(
           "__init__",
           [](BossRun* self, std::shared_ptr<const LocalScore> score,
              const Array<bool, 2>& required, const Array<bool, 2>& forbidden,
              std::optional<std::size_t> max_parents, double tolerance) {
               std::construct_at(
                   self, std::move(score),
                   Rules{to_flags(required), to_flags(forbidden),
                         max_parents.value_or(required.shape(0))},
                   tolerance);
           },
           "score"_a, nb::kw_only(), "required"_a.noconvert(), "forbidden"_a.noconvert(), "max_parents"_a.none(),
           "tolerance"_a)
        .def(
            "start",
            [](BossRun& self, const Array<Variable, 1>& order) {
                const auto claim = self.claim();
                self.start(to_variables(order));
            },
            "order"_a.noconvert())
        .def(
            "sweep",
            [](BossRun& self, const Array<Variable, 1>& turns) {
                const auto claim = self.claim();
                self.sweep(to_variables(turns));
            },
            "turns"_a.noconvert())
        .def(
            "step",
            [](BossRun& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Work until it wants something, for so long at most.")
        .def(
            "best",
            [](BossRun& self) {
                const auto claim = self.claim();
                auto best = self.best();
                std::optional<std::pair<std::vector<std::vector<Variable>>, double>> result;
                if (best) result.emplace(std::move(best->parents), best->score);
                return result;
            })
        .def("parents",
             [](BossRun& self) {
                 const auto claim = self.claim();
                 return self.parents();
             },
             "Parents of each variable in the current order.")
        .def_prop_ro("order",
                     [](BossRun& self) {
                         const auto claim = self.claim();
                         return std::vector<Variable>{self.order().begin(), self.order().end()};
                     })
        .def_prop_ro("best_order",
                     [](BossRun& self) {
                         const auto claim = self.claim();
                         return std::vector<Variable>{self.best_order().begin(),
                                                      self.best_order().end()};
                     })
        .def_prop_ro("settled", &BossRun::settled)
        .def_prop_ro("stage", &BossRun::stage)
        .def_prop_ro("sweeps", &BossRun::sweeps)
        .def_prop_ro("moved", &BossRun::moved)
        .def_prop_ro("families", &BossRun::families)
        .def_prop_ro("score", &BossRun::score);
    m.def("step_together", &step_together, "runs"_a, "seconds"_a, "jobs"_a,
          "Step several runs at the same time, in up to ``jobs`` threads.");
}

}  // namespace isthmus

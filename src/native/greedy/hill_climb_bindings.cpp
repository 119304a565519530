#include "bindings.hpp"
#include "greedy/hill_climb.hpp"

namespace isthmus {

namespace {

int traverse_climb(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        Py_VISIT(nb::find(nb::inst_ptr<HillClimb>(self)->local_score()).ptr());
    }
    return 0;
}

PyType_Slot climb_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_climb)},
                             {0, nullptr}};

}  // namespace

void bind_hill_climb(nb::module_& m) {
    nb::class_<HillClimb>(m, "HillClimb", nb::type_slots(climb_slots))
        .def(
            "__init__",
            [](HillClimb* self, std::shared_ptr<const LocalScore> score,
               const Array<bool, 2>& required, const Array<bool, 2>& forbidden,
               std::optional<std::size_t> max_parents, std::size_t tabu, std::size_t patience,
               std::size_t restarts, std::optional<std::uint64_t> seed) {
                std::construct_at(
                    self, std::move(score),
                    Rules{to_flags(required), to_flags(forbidden),
                          max_parents.value_or(required.shape(0))},
                    HillClimb::Options{
                        .tabu = tabu, .patience = patience, .restarts = restarts, .seed = seed});
            },
            "score"_a, nb::kw_only(), "required"_a.noconvert(), "forbidden"_a.noconvert(),
            "max_parents"_a.none(), "tabu"_a, "patience"_a, "restarts"_a, "seed"_a.none())
        .def(
            "start",
            [](HillClimb& self, const std::vector<std::vector<Variable>>& parents, Variable parent,
               Variable child, std::size_t restarts, bool nearby) {
                const auto claim = self.claim();
                if (parents.size() != self.local_score().size()) {
                    throw std::invalid_argument{"the graph has another number of variables"};
                }
                self.start(parents, parent, child, restarts, nearby);
            },
            "parents"_a, nb::kw_only(), "parent"_a, "child"_a, "restarts"_a,
            "nearby"_a,
            "Begin anew from this graph, without removing or reversing one edge of it.")
        .def(
            "step",
            [](HillClimb& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Search for at most this many seconds; return whether it is done.")
        .def(
            "best",
            [](HillClimb& self) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = Watch::unlimited(&check_signals);
                auto best = self.best(watch);
                return std::pair{std::move(best.parents), best.score};
            },
            "Return the parents and the score of the best graph so far.")
        .def_prop_ro("changes", &HillClimb::changes)
        .def_prop_ro("climbs", &HillClimb::climbs)
        .def_prop_ro("scored", &HillClimb::scored)
        .def_prop_ro("score", &HillClimb::score);
}

}  // namespace isthmus

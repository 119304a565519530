#include <cstring>
#include <limits>
#include <stdexcept>

#include "bindings.hpp"
#include "mcmc/sampling_run.hpp"
#include "mcmc/transitions.hpp"

namespace isthmus {

namespace {

int traverse_tables(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        Py_VISIT(nb::find(nb::inst_ptr<FamilyTables>(self)->local_score()).ptr());
    }
    return 0;
}

int traverse_run(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        Py_VISIT(nb::find(nb::inst_ptr<SamplingRun>(self)->tables()).ptr());
    }
    return 0;
}

PyType_Slot tables_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_tables)},
                              {0, nullptr}};
PyType_Slot run_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_run)}, {0, nullptr}};

Chain::Labels to_labels(const Array<std::uint32_t, 1>& array) { return to_vector(array); }

/// A set of nodes; bits beyond the nodes are an error.
std::span<const Word> to_set(const FamilyTables& tables, const Array<Word, 1>& array) {
    const std::size_t d = tables.size();
    const bool fits = array.size() == words_for(d) &&
                      (d % 64 == 0 || array.data()[array.size() - 1] >> (d % 64) == 0);
    if (!fits) throw std::invalid_argument{"a set must have one bit for each node"};
    return {array.data(), array.size()};
}

double log_sum(FamilyTables& self, std::size_t node, const Array<Word, 1>& allowed,
               const std::optional<Array<Word, 1>>& wanted) {
    const auto claim = self.claim();
    if (!self.done()) throw std::invalid_argument{"the tables are not built yet"};
    if (node >= self.size()) throw std::invalid_argument{"there is no such node"};
    const auto from = to_set(self, allowed);
    const double offset = self[node].best_score();
    if (!wanted) return offset + self[node].total(from);
    const auto one_of = to_set(self, *wanted);
    if (!is_subset(one_of, from)) throw std::invalid_argument{"wanted nodes must be allowed"};
    return offset + self[node].restricted(from, one_of);
}

template <class Key>
auto to_arrays(const std::map<Key, double>& distribution, std::size_t nodes) {
    std::vector<typename Key::value_type> states;
    std::vector<double> probabilities;
    for (const auto& [state, probability] : distribution) {
        states.insert(states.end(), state.begin(), state.end());
        probabilities.push_back(probability);
    }
    const std::size_t count = probabilities.size();
    return std::pair{give<2>(std::move(states), {count, nodes}), give(std::move(probabilities))};
}

void bind_tables(nb::module_& m) {
    nb::class_<FamilyTables>(m, "FamilyTables", nb::type_slots(tables_slots))
        .def(
            "__init__",
            [](FamilyTables* self, std::shared_ptr<const LocalScore> score,
               const Array<bool, 2>& required, const Array<bool, 2>& forbidden,
               const Array<bool, 2>& candidates, bool outside,
               std::optional<std::size_t> max_parents, FamilyTables* previous) {
                std::optional<InUse::Guard> claim;
                if (previous != nullptr) claim.emplace(previous->in_use());
                std::construct_at(self, std::move(score),
                                  Rules{to_flags(required), to_flags(forbidden),
                                        max_parents.value_or(required.shape(0))},
                                  to_flags(candidates), outside, previous);
            },
            "score"_a, nb::kw_only(), "required"_a.noconvert(), "forbidden"_a.noconvert(),
            "candidates"_a.noconvert(), "outside"_a, "max_parents"_a.none(), "previous"_a.none())
        .def(
            "step",
            [](FamilyTables& self, double seconds, std::size_t jobs) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch, jobs);
            },
            "seconds"_a, "jobs"_a, "Score for at most this many seconds; return whether it is done.")
        .def("log_sum", &log_sum, "node"_a, "allowed"_a.noconvert(), "wanted"_a.noconvert().none(),
             "Logarithm of the weight of all parent sets within ``allowed``; with ``wanted``, of "
             "those with a member in it.")
        .def_prop_ro("size", &FamilyTables::size)
        .def_prop_ro("built", &FamilyTables::built)
        .def_prop_ro("families", &FamilyTables::families);
}

}  // namespace

void bind_mcmc(nb::module_& m) {
    bind_tables(m);
    nb::enum_<Space>(m, "Space")
        .value("ORDERS", Space::orders)
        .value("PARTITIONS", Space::partitions);
    nb::class_<SamplingRun>(m, "SamplingRun", nb::type_slots(run_slots))
        .def(
            "__init__",
            [](SamplingRun* self, std::shared_ptr<FamilyTables> tables, Space space,
               const Array<std::uint32_t, 2>& starts, const Array<std::uint64_t, 1>& seeds,
               std::size_t levels, std::size_t warmup, std::size_t thin, std::size_t draws) {
                std::vector<Chain::Labels> labels;
                for (std::size_t c = 0; c < starts.shape(0); ++c) {
                    const auto* const row = starts.data() + c * starts.shape(1);
                    labels.emplace_back(row, row + starts.shape(1));
                }
                const auto claim = tables->claim();
                std::construct_at(self, tables, labels, to_vector(seeds),
                                  SamplingRun::Options{.space = space,
                                                       .levels = levels,
                                                       .warmup = warmup,
                                                       .thin = thin,
                                                       .draws = draws});
            },
            "tables"_a, nb::kw_only(), "space"_a, "starts"_a.noconvert(), "seeds"_a.noconvert(),
            "levels"_a, "warmup"_a, "thin"_a, "draws"_a)
        .def(
            "step",
            [](SamplingRun& self, double seconds, std::size_t jobs) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch, jobs);
            },
            "seconds"_a, "jobs"_a, "Sample for at most this many seconds; return whether it is done.")
        .def(
            "draws",
            [](SamplingRun& self, std::size_t chain) {
                const auto claim = self.claim();
                const TemperedChain& own = self.chain(chain);
                const std::size_t count = own.draws();
                return std::pair{
                    give<3>(std::vector<Word>{own.graphs()},
                            {count, self.nodes(), words_for(self.nodes())}),
                    give(std::vector<double>{own.scores()})};
            },
            "chain"_a, "Parents of each node in each draw so far, and the scores of the draws.")
        .def(
            "levels",
            [](SamplingRun& self, std::size_t chain) {
                const auto claim = self.claim();
                return std::pair{give(std::vector<double>{self.chain(chain).heats()}),
                                 give(self.chain(chain).exchange_rates())};
            },
            "chain"_a, "Heats, and the share of accepted exchanges between neighbours.")
        .def(
            "edges",
            [](SamplingRun& self, std::size_t chain) {
                const auto claim = self.claim();
                return give<2>(self.chain(chain).edges().means(), {self.nodes(), self.nodes()});
            },
            "chain"_a,
            "Edge probabilities given the states since the warm-up, averaged; one row per child.")
        .def_prop_ro("chains", &SamplingRun::chains)
        .def_prop_ro("rounds", &SamplingRun::rounds)
        .def_prop_ro("total_rounds", &SamplingRun::total_rounds);
    m.def(
        "move_probabilities",
        [](const std::shared_ptr<FamilyTables>& tables, Space space,
           const Array<std::uint32_t, 1>& labels, std::size_t move, double heat) {
            const auto claim = tables->claim();
            auto watch = Watch::unlimited(&check_signals);
            return to_arrays(transitions(tables, space, to_labels(labels), move, heat, watch),
                             tables->size());
        },
        "tables"_a, "space"_a, "labels"_a.noconvert(), "move"_a, "heat"_a,
        "States after one move, and their probabilities; for tests with up to five nodes.");
    m.def(
        "graph_probabilities",
        [](const std::shared_ptr<FamilyTables>& tables, Space space,
           const Array<std::uint32_t, 1>& labels) {
            const auto claim = tables->claim();
            auto watch = Watch::unlimited(&check_signals);
            return to_arrays(graph_probabilities(tables, space, to_labels(labels), watch),
                             tables->size());
        },
        "tables"_a, "space"_a, "labels"_a.noconvert(),
        "Graphs that a state draws, and their probabilities; for tests with up to five nodes.");
    m.def(
        "edge_probabilities",
        [](const std::shared_ptr<FamilyTables>& tables, Space space,
           const Array<std::uint32_t, 1>& labels) {
            const auto claim = tables->claim();
            const std::size_t d = tables->size();
            return give<2>(edge_probabilities(tables, space, to_labels(labels)), {d, d});
        },
        "tables"_a, "space"_a, "labels"_a.noconvert(),
        "Probability of each edge given a state, one row per child.");
}

}  // namespace isthmus

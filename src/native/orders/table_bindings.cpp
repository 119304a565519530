#include <limits>
#include <optional>

#include "bindings.hpp"
#include "orders/swap_search.hpp"
#include "orders/table_run.hpp"
#include "orders/table_walks.hpp"

namespace isthmus {

namespace {

using Lines = std::shared_ptr<const ScoreLines>;

void construct_lines(ScoreLines* self, const Array<std::int64_t, 1>& starts, Array<Word, 2> sets,
                     Array<double, 1> scores) {
    if (sets.shape(0) != scores.shape(0)) throw nb::value_error("each set needs one score");
    const auto arrays = std::make_shared<TableArrays>(std::move(sets), std::move(scores));
    std::construct_at(self, to_vector(starts), arrays->sets.data(), arrays->scores.data(),
                      arrays->scores.size(), arrays->sets.shape(1), arrays);
}

Given<Word, 2> needed_by_all(const ScoreLines& self) {
    auto watch = Watch::unlimited(&check_signals);
    self.prepare(watch);
    std::vector<Word> sets;
    sets.reserve(self.size() * self.words());
    for (std::size_t v = 0; v < self.size(); ++v) {
        const auto own = self.needed(static_cast<Variable>(v));
        sets.insert(sets.end(), own.begin(), own.end());
    }
    return give<2>(std::move(sets), {self.size(), self.words()});
}

std::vector<Variable> copied(Variables values) { return {values.begin(), values.end()}; }

std::vector<std::int64_t> lines_of(const TableOrder& order) {
    std::vector<std::int64_t> lines;
    lines.reserve(order.size());
    for (std::size_t v = 0; v < order.size(); ++v) {
        lines.push_back(order.line(static_cast<Variable>(v)));
    }
    return lines;
}

void bind_run(nb::module_& m) {
    nb::class_<TableRun>(m, "TableRun", "An order over a score table, improved job by job.")
        .def(
            "__init__",
            [](TableRun* self, Lines table, const Array<Variable, 1>& order) {
                std::construct_at(self, std::move(table), to_variables(order));
            },
            "table"_a, "order"_a)
        .def(
            "reset",
            [](TableRun& self, const Array<Variable, 1>& order) {
                const auto claim = self.claim();
                self.reset(to_variables(order));
            },
            "order"_a, "Begin to score another order.")
        .def(
            "sweep",
            [](TableRun& self, const Array<Variable, 1>& firsts, std::size_t size) {
                const auto claim = self.claim();
                self.sweep(to_variables(firsts), size);
            },
            "firsts"_a, "size"_a = 1, "Begin to move the windows that begin with these nodes.")
        .def(
            "select",
            [](TableRun& self) {
                const auto claim = self.claim();
                self.select();
            },
            "Begin to let nodes choose acyclic parents, the last one first.")
        .def(
            "step",
            [](TableRun& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Go on for so long at most; return whether the job is done.")
        .def_prop_ro("done", &TableRun::done)
        .def_prop_ro("order", [](TableRun& self) {
            const auto claim = self.claim();
            return give(copied(self.order().order()));
        }, nb::rv_policy::automatic)
        .def_prop_ro("lines", [](TableRun& self) {
            const auto claim = self.claim();
            return give(lines_of(self.order()));
        }, nb::rv_policy::automatic)
        .def_prop_ro("total", [](TableRun& self) {
            const auto claim = self.claim();
            return self.order().total();
        })
        .def_prop_ro("gained", &TableRun::gained)
        .def_prop_ro("changed", &TableRun::changed);
}

void bind_swaps(nb::module_& m) {
    nb::class_<SwapSearch>(m, "SwapSearch", "Swaps of neighbours, the best one each time.")
        .def(
            "__init__",
            [](SwapSearch* self, Lines table, const Array<Variable, 1>& order, std::uint32_t memory,
               std::uint32_t patience, std::optional<std::size_t> most) {
                constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
                std::construct_at(self, std::move(table), to_variables(order),
                                  SwapSearch::Options{.memory = memory,
                                                      .patience = patience,
                                                      .most = most.value_or(unlimited)});
            },
            "table"_a, "order"_a, nb::kw_only(), "memory"_a, "patience"_a,
            "most"_a.none() = nb::none())
        .def(
            "step",
            [](SwapSearch& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Go on for so long at most; return whether it has ended.")
        .def_prop_ro("order", [](SwapSearch& self) {
            const auto claim = self.claim();
            return give(copied(self.best()));
        }, nb::rv_policy::automatic)
        .def_prop_ro("score", &SwapSearch::score)
        .def_prop_ro("moves", &SwapSearch::moves);
}

void bind_walks(nb::module_& m) {
    nb::class_<TableWalks>(m, "TableWalks", "Walks through the order graph of a score table.")
        .def(
            "__init__",
            [](TableWalks* self, Lines table, std::size_t walks) {
                std::construct_at(self, std::move(table), walks);
            },
            "table"_a, "walks"_a)
        .def("restart",
             [](TableWalks& self) {
                 const auto claim = self.claim();
                 self.restart();
             })
        .def(
            "take",
            [](TableWalks& self, const Array<Variable, 1>& actions) {
                const auto claim = self.claim();
                std::vector<double> rewards(self.walks());
                {
                    const nb::gil_scoped_release no_gil;
                    auto watch = Watch::unlimited(&check_signals);
                    self.take(to_variables(actions), rewards, watch);
                }
                return give(std::move(rewards));
            },
            "actions"_a, "Place a node in each walk; return the rewards.")
        .def(
            "allowed",
            [](TableWalks& self) {
                const auto claim = self.claim();
                const std::size_t size = self.walks() * self.size();
                ZeroedArray<bool> marks{size};
                {
                    const nb::gil_scoped_release no_gil;
                    auto watch = Watch::unlimited(&check_signals);
                    self.allowed(marks.span(), watch);
                }
                return give<2>(std::move(marks), {self.walks(), self.size()});
            },
            "Mark the nodes that can be placed next in each walk.");
}

}  // namespace

void bind_table_orders(nb::module_& m) {
    nb::class_<ScoreLines>(m, "ScoreLines",
                           "A score table with an index; the arrays must not change.")
        .def("__init__", &construct_lines, "starts"_a, "sets"_a.noconvert(),
             "scores"_a.noconvert())
        .def(
            "prepare",
            [](const ScoreLines& self, double seconds) {
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return run_slice([&] {
                    self.prepare(watch);
                });
            },
            "seconds"_a = 0.01, "Make the index; return whether it is done.")
        .def("needed", &needed_by_all, "For each node the set of those in all its parent sets.")
        .def_prop_ro("size", &ScoreLines::size, "Number of nodes.");
    bind_run(m);
    bind_swaps(m);
    bind_walks(m);
}

}  // namespace isthmus

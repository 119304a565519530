#include "bindings.hpp"

#include "exact/cluster_search.hpp"
#include "exact/decomposition.hpp"
#include "exact/order_graph.hpp"
#include "exact/subset_dp.hpp"
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

template <auto Method>
nb::tuple table_of(TableBuilder& self) {
    const auto claim = self.claim();
    TableBuilder::Table table;
    {
        const nb::gil_scoped_release no_gil;
        auto watch = Watch::unlimited(&check_signals);
        table = (self.*Method)(watch);
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
        .def("table", &table_of<&TableBuilder::table>,
             "Return starts, sets and scores; the builder must be ready.")
        .def("so_far", &table_of<&TableBuilder::so_far>,
             "Return the same for the children that have begun, as far as they are.")
        .def_prop_ro("done", &TableBuilder::done)
        .def_prop_ro("ready", &TableBuilder::ready)
        .def_prop_ro("complete", &TableBuilder::complete)
        .def_prop_ro("finished", &TableBuilder::finished)
        .def_prop_ro("children", &TableBuilder::children)
        .def_prop_ro("scored", &TableBuilder::scored);
}

/// Steps an object without the GIL.
template <class Run>
bool step(Run& self, double seconds) {
    const auto claim = self.claim();
    const nb::gil_scoped_release no_gil;
    auto watch = watch_for(seconds);
    return self.step(watch);
}

ComponentProblem to_problem(const Array<std::int64_t, 1>& starts, const Array<Word, 1>& masks,
                            const Array<double, 1>& scores) {
    return {std::span{starts.data(), starts.size()}, to_vector(masks), to_vector(scores)};
}

void bind_order_graph(nb::module_& m) {
    nb::class_<OrderGraph>(m, "OrderGraph", "A* on the order graph of at most 64 nodes.")
        .def(
            "__init__",
            [](OrderGraph* self, const Array<std::int64_t, 1>& starts, const Array<Word, 1>& masks,
               const Array<double, 1>& scores, const Array<std::int64_t, 1>& groups, double known,
               std::optional<double> slack, std::size_t max_states) {
                if (slack && !(*slack >= 0.0)) throw nb::value_error("slack must not be negative");
                std::construct_at(
                    self, to_problem(starts, masks, scores),
                    std::span{groups.data(), groups.size()},
                    OrderGraph::Options{.known = known, .slack = slack, .max_states = max_states});
            },
            "starts"_a, "masks"_a, "scores"_a, nb::kw_only(), "groups"_a, "known"_a,
            "slack"_a.none(), "max_states"_a)
        .def("step", &step<OrderGraph>, "seconds"_a = 0.01,
             "Go on for so long at most; return whether it is done.")
        .def(
            "lines",
            [](OrderGraph& self) {
                const auto claim = self.claim();
                return give(self.lines());
            },
            "Line of each node in the graph that was found; empty if none is.")
        .def(
            "closed",
            [](OrderGraph& self) {
                const auto claim = self.claim();
                std::pair<std::vector<Word>, std::vector<double>> found;
                {
                    const nb::gil_scoped_release no_gil;
                    auto watch = Watch::unlimited(&check_signals);
                    found = self.closed(watch);
                }
                return nb::make_tuple(give(std::move(found.first)), give(std::move(found.second)));
            },
            "States that were expanded, as masks, and the best score of the nodes in them.")
        .def(
            "value",
            [](OrderGraph& self, Word placed) {
                const auto claim = self.claim();
                return self.value(placed);
            },
            "placed"_a, "Best score of the nodes in a mask; None if that state was not expanded.")
        .def_prop_ro("done", &OrderGraph::done)
        .def_prop_ro("gave_up", &OrderGraph::gave_up)
        .def_prop_ro("searching", &OrderGraph::searching, "Whether the patterns are filled.")
        .def_prop_ro("expanded", &OrderGraph::expanded)
        .def_prop_ro("states", &OrderGraph::states)
        .def_prop_ro("known", &OrderGraph::known, "Score of the best graph known.")
        .def_prop_ro("bound", &OrderGraph::bound, "What the best graph can score at most.");

    nb::class_<SubsetDP>(m, "SubsetDP", "Dynamic programming over all subsets of the nodes.")
        .def(
            "__init__",
            [](SubsetDP* self, const Array<std::int64_t, 1>& starts, const Array<Word, 1>& masks,
               const Array<double, 1>& scores) {
                std::construct_at(self, to_problem(starts, masks, scores));
            },
            "starts"_a, "masks"_a, "scores"_a)
        .def("step", &step<SubsetDP>, "seconds"_a = 0.01,
             "Go on for so long at most; return whether all subsets are solved.")
        .def(
            "lines",
            [](SubsetDP& self) {
                const auto claim = self.claim();
                return give(self.lines());
            },
            "Line of each node in the best graph; empty before the end.")
        .def_prop_ro("solved", &SubsetDP::solved)
        .def_prop_ro("done", &SubsetDP::done);
}

void bind_clusters(nb::module_& m) {
    nb::class_<ClusterSearch>(m, "ClusterSearch",
                              "Finds clusters that a fractional choice of parent sets violates.")
        .def(
            "__init__",
            [](ClusterSearch* self, const Array<std::int64_t, 1>& starts,
               const Array<Word, 2>& sets, const Array<double, 1>& amounts,
               const Array<Variable, 1>& first, const Array<Variable, 1>& second, std::size_t most,
               double limit) {
                if (sets.shape(0) != amounts.shape(0) ||
                    (starts.size() > 0 && sets.shape(1) != words_for(starts.size() - 1))) {
                    throw nb::value_error("sets need one row for each amount and a bit per node");
                }
                std::construct_at(
                    self,
                    ClusterSearch::Choice{.starts = to_vector(starts),
                                          .sets = {sets.data(), sets.data() + sets.size()},
                                          .amounts = to_vector(amounts)},
                    to_vector(first), to_vector(second), most, limit);
            },
            "starts"_a, "sets"_a, "amounts"_a, nb::kw_only(), "first"_a, "second"_a, "most"_a,
            "limit"_a)
        .def("step", &step<ClusterSearch>, "seconds"_a = 0.01,
             "Go on for so long at most; return whether all pairs were tried.")
        .def(
            "found",
            [](ClusterSearch& self) {
                const auto claim = self.claim();
                return nb::make_tuple(give<2>(std::vector<Word>{self.clusters()},
                                              {self.sums().size(), self.words()}),
                                      give(std::vector<double>{self.sums()}));
            },
            "Clusters as sets of bits, and their sums, in the order in which they were found.")
        .def_prop_ro("done", &ClusterSearch::done);
}

nb::list components_of(Decomposition& self) {
    const auto claim = self.claim();
    if (!self.done()) throw std::logic_error{"the table is not split yet"};
    nb::list found;
    for (const Component& one : self.components()) {
        const std::size_t words = words_for(one.nodes.size());
        found.append(nb::make_tuple(give(std::vector{one.nodes}), give(std::vector{one.starts}),
                                    give<2>(std::vector{one.sets}, {one.scores.size(), words}),
                                    give(std::vector{one.scores}), give(std::vector{one.lines})));
    }
    return found;
}

void bind_decomposition(nb::module_& m) {
    nb::class_<Decomposition>(m, "Decomposition",
                              "Splits a score table into components that can be solved alone.")
        .def(
            "__init__",
            [](Decomposition* self, const Array<std::int64_t, 1>& starts, Array<Word, 2> sets,
               Array<double, 1> scores, double slack) {
                if (!(slack >= 0.0)) throw nb::value_error("slack must not be negative");
                if (sets.shape(0) != scores.shape(0)) {
                    throw nb::value_error("each set needs one score");
                }
                const auto arrays =
                    std::make_shared<TableArrays>(std::move(sets), std::move(scores));
                std::construct_at(self, to_vector(starts),
                                  std::span{arrays->sets.data(), arrays->sets.size()},
                                  std::span{arrays->scores.data(), arrays->scores.size()}, slack,
                                  arrays);
            },
            "starts"_a, "sets"_a.noconvert(), "scores"_a.noconvert(), nb::kw_only(),
            "slack"_a = 0.0)
        .def("step", &step<Decomposition>, "seconds"_a = 0.01,
             "Go on for so long at most; return whether it is done.")
        .def("components", &components_of,
             "Nodes of each component, then starts, sets over their positions, scores, and lines "
             "in the table.")
        .def_prop_ro("done", &Decomposition::done);
}

}  // namespace

void bind_exact(nb::module_& m) {
    bind_decomposition(m);
    bind_builder(m);
    bind_order_graph(m);
    bind_clusters(m);
}

}  // namespace isthmus

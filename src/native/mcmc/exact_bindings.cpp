#include <utility>

#include "bindings.hpp"
#include "mcmc/exact_sampler.hpp"

namespace isthmus {

namespace {

int traverse_posterior(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        Py_VISIT(nb::find(*nb::inst_ptr<ExactPosterior>(self)->weights()->score()).ptr());
    }
    return 0;
}

int traverse_sampler(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) {
        Py_VISIT(nb::find(nb::inst_ptr<ExactSampler>(self)->posterior()).ptr());
    }
    return 0;
}

PyType_Slot posterior_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_posterior)},
                                 {0, nullptr}};
PyType_Slot sampler_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_sampler)},
                               {0, nullptr}};

/// Probabilities from sums of weights.
Given<double, 2> probabilities(const Matrix<double>& sums, double total) {
    const std::size_t d = sums.rows();
    std::vector<double> values;
    for (std::size_t u = 0; u < d; ++u) {
        for (std::size_t v = 0; v < d; ++v) {
            values.push_back(u == v ? 0.0 : std::min(sums.row(u)[v] / total, 1.0));
        }
    }
    return give<2>(std::move(values), {d, d});
}

void require_done(const ExactPosterior& posterior) {
    if (!posterior.done()) throw std::logic_error{"the posterior is not computed yet"};
}

}  // namespace

void bind_exact_posterior(nb::module_& m) {
    nb::class_<ExactPosterior>(m, "ExactPosterior", nb::type_slots(posterior_slots),
                               "Exact probabilities of edges and of ancestor relations.")
        .def(
            "__init__",
            [](ExactPosterior* self, std::shared_ptr<const LocalScore> score,
               const Array<bool, 2>& required, const Array<bool, 2>& forbidden,
               std::optional<std::size_t> max_parents) {
                const std::size_t d = score->size();
                std::construct_at(
                    self, std::make_shared<FamilyWeights>(
                              std::move(score), Rules{to_flags(required), to_flags(forbidden),
                                                      max_parents.value_or(d)}));
            },
            "score"_a, nb::kw_only(), "required"_a, "forbidden"_a, "max_parents"_a.none())
        .def(
            "step",
            [](ExactPosterior& self, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(watch);
            },
            "seconds"_a = 0.01, "Go on for so long at most; return whether all is done.")
        .def(
            "edges",
            [](ExactPosterior& self) {
                const auto claim = self.claim();
                require_done(self);
                return probabilities(self.edges(), self.total());
            },
            "Entry [u, v] is the probability of the edge u -> v.")
        .def(
            "ancestors",
            [](ExactPosterior& self) {
                const auto claim = self.claim();
                require_done(self);
                return probabilities(self.ancestors(), self.total());
            },
            "Entry [u, v] is the probability of a directed path from u to v.")
        .def_prop_ro("done", &ExactPosterior::done)
        .def_prop_ro("progress", &ExactPosterior::progress, "Share of the work that is done.")
        .def_prop_ro("log_total", &ExactPosterior::log_total,
                     "Logarithm of the sum of the weights of all graphs.")
        .def_prop_ro("error", &ExactPosterior::error,
                     "How far sums of probabilities are from one.")
        .def_prop_ro("sets", &ExactPosterior::sets, "Number of sets that were not left out.");

    nb::class_<ExactSampler>(m, "ExactSampler", nb::type_slots(sampler_slots),
                             "Independent draws from the exact posterior.")
        .def(nb::init<std::shared_ptr<ExactPosterior>, std::uint64_t>(), "posterior"_a, "seed"_a)
        .def(
            "step",
            [](ExactSampler& self, std::size_t draws, double seconds) {
                const auto claim = self.claim();
                const nb::gil_scoped_release no_gil;
                auto watch = watch_for(seconds);
                return self.step(draws, watch);
            },
            "draws"_a, "seconds"_a = 0.01,
            "Draw for at most this many seconds; return whether the number of draws is reached.")
        .def(
            "parents",
            [](ExactSampler& self) {
                const auto claim = self.claim();
                return give<2>(std::vector<Word>{self.parents()}, {self.draws(), self.size()});
            },
            "Parents of each node in each draw, as bits.")
        .def(
            "scores",
            [](ExactSampler& self) {
                const auto claim = self.claim();
                return give(std::vector<double>{self.scores()});
            },
            "Logarithm of the weight of each draw.")
        .def_prop_ro("draws", &ExactSampler::draws, "Number of draws.");
}

}  // namespace isthmus

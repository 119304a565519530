#include "mcmc/edge_averages.hpp"

#include <algorithm>

namespace isthmus {

EdgeAverages::EdgeAverages(const FamilyTables& tables)
    : tables_{tables},
      now_{tables.size()},
      next_{tables.size()},
      current_{tables.size(), tables.size()},
      sums_{tables.size(), tables.size()},
      repeats_(tables.size()) {}

void EdgeAverages::add(const Chain& chain) {
    chain.demands(next_);
    for (std::size_t v = 0; v < tables_.size(); ++v) {
        const bool same = states_ > 0 &&
                          std::ranges::equal(next_.allowed.row(v), now_.allowed.row(v)) &&
                          std::ranges::equal(next_.wanted.row(v), now_.wanted.row(v));
        if (!same) {
            const auto repeats = static_cast<double>(repeats_[v]);
            const auto current = current_.row(v);
            const auto sums = sums_.row(v);
            for (std::size_t u = 0; u < sums.size(); ++u) sums[u] += repeats * current[u];
            tables_[v].edge_probabilities(next_.allowed.row(v), next_.wanted.row(v), current);
            repeats_[v] = 0;
        }
        ++repeats_[v];
    }
    std::swap(now_, next_);
    ++states_;
}

std::vector<double> EdgeAverages::means() const {
    std::vector<double> means;
    means.reserve(tables_.size() * tables_.size());
    const auto states = static_cast<double>(states_);
    for (std::size_t v = 0; v < tables_.size(); ++v) {
        const auto repeats = static_cast<double>(repeats_[v]);
        for (std::size_t u = 0; u < tables_.size(); ++u) {
            const double sum = sums_.row(v)[u] + repeats * current_.row(v)[u];
            means.push_back(std::min(sum / states, 1.0));
        }
    }
    return means;
}

}  // namespace isthmus

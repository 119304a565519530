#include "scoring/prior_score.hpp"

#include <stdexcept>
#include <utility>

namespace isthmus {

PriorScore::PriorScore(const LocalScore& inner, std::vector<double> weights)
    : inner_{inner}, weights_{std::move(weights)} {
    if (weights_.size() != inner.size() * inner.size()) {
        throw std::invalid_argument{"there must be one weight for each pair of variables"};
    }
}

double PriorScore::weight(Variable child, Variable parent) const {
    return weights_[static_cast<std::size_t>(child) * inner_.size() +
                    static_cast<std::size_t>(parent)];
}

double PriorScore::total(Variable child, Variables parents) const {
    double sum = 0.0;
    for (const Variable parent : parents) sum += weight(child, parent);
    return sum;
}

void PriorScore::extensions(Variable child, Variables parents, Variables candidates,
                            std::span<double> out, Watch& watch) const {
    // If this pauses, the inner score keeps what it has; weights are added to whole batches.
    inner_.extensions(child, parents, candidates, out, watch);
    const double base = total(child, parents);
    out[0] += base;
    for (std::size_t j = 0; j < candidates.size(); ++j) {
        out[1 + j] += base + weight(child, candidates[j]);
    }
}

void PriorScore::reductions(Variable child, Variables parents, std::size_t first,
                            std::span<double> out, Watch& watch) const {
    inner_.reductions(child, parents, first, out, watch);
    const double base = total(child, parents);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += base - weight(child, parents[first + i]);
}

}  // namespace isthmus

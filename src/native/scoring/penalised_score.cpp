#include "scoring/penalised_score.hpp"

#include <stdexcept>
#include <utility>

namespace isthmus {

PenalisedScore::PenalisedScore(const LocalScore& inner, std::vector<double> prices, double factor)
    : inner_{inner}, prices_{std::move(prices)}, factor_{factor} {
    if (prices_.size() != inner.size() + 1) {
        throw std::invalid_argument{"there must be one price for each number of parents, 0 to d"};
    }
}

void PenalisedScore::extensions(Variable child, Variables parents, Variables candidates,
                                std::span<double> out, Watch& watch) const {
    // If this pauses, the inner score keeps what it has; prices are subtracted from whole batches.
    inner_.extensions(child, parents, candidates, out, watch);
    out[0] = factor_ * out[0] - prices_[parents.size()];
    if (candidates.empty()) return;
    const double price = prices_[parents.size() + 1];
    for (double& value : out.subspan(1, candidates.size())) value = factor_ * value - price;
}

void PenalisedScore::reductions(Variable child, Variables parents, std::size_t first,
                                std::span<double> out, Watch& watch) const {
    inner_.reductions(child, parents, first, out, watch);
    const double price = prices_[parents.size() - 1];
    for (double& value : out) value = factor_ * value - price;
}

}  // namespace isthmus

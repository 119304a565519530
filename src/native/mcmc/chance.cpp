#include "mcmc/chance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace isthmus {

std::size_t Chance::choose(std::span<double> log_weights) {
    const double top = std::ranges::max(log_weights);
    for (double& value : log_weights) value = std::exp(value - top);
    return pick(log_weights);
}

std::size_t RandomChance::below(std::size_t bound) {
    return static_cast<std::size_t>(random_.below(bound));
}

bool RandomChance::accept(double log_ratio) {
    // The number is drawn in any case: then the sequence depends on the number of choices only.
    const double u = fraction();
    return log_ratio >= 0.0 || u < std::exp(log_ratio);
}

std::size_t RandomChance::pick(std::span<const double> weights) {
    double rest = fraction() * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!(weights[i] > 0.0)) continue;
        last = i;
        rest -= weights[i];
        if (rest < 0.0) break;
    }
    return last;
}

double RandomChance::fraction() { return static_cast<double>(random_.next() >> 11) * 0x1p-53; }

std::size_t EveryChance::below(std::size_t bound) {
    return take(std::vector<double>(bound, 1.0 / static_cast<double>(bound)));
}

bool EveryChance::accept(double log_ratio) {
    const double p = log_ratio >= 0.0 ? 1.0 : std::exp(log_ratio);
    return take({p, 1.0 - p}) == 0;
}

std::size_t EveryChance::pick(std::span<const double> weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> shares{weights.begin(), weights.end()};
    for (double& share : shares) share /= total;
    return take(std::move(shares));
}

double EveryChance::probability() const {
    double product = 1.0;
    for (const Branch& branch : path_) product *= branch.probabilities[branch.taken];
    return product;
}

std::size_t EveryChance::take(std::vector<double> probabilities) {
    if (depth_ == path_.size()) path_.push_back({std::move(probabilities), 0});
    Branch& branch = path_[depth_];
    const std::size_t count = branch.probabilities.size();
    while (branch.taken + 1 < count && !(branch.probabilities[branch.taken] > 0.0)) ++branch.taken;
    ++depth_;
    return branch.taken;
}

bool EveryChance::next() {
    depth_ = 0;
    while (!path_.empty()) {
        Branch& branch = path_.back();
        do {
            ++branch.taken;
        } while (branch.taken < branch.probabilities.size() &&
                 !(branch.probabilities[branch.taken] > 0.0));
        if (branch.taken < branch.probabilities.size()) return true;
        path_.pop_back();
    }
    return false;
}

}  // namespace isthmus

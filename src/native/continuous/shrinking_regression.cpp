#include "continuous/shrinking_regression.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "continuous/regression.hpp"

namespace isthmus {

ShrinkingRegression::ShrinkingRegression(std::span<const double> moments, std::size_t variables,
                                         std::size_t child, std::vector<Variable> parents,
                                         std::vector<Variable> removals, double tolerance)
    : moments_{moments},
      variables_{variables},
      child_{child},
      parents_{std::move(parents)},
      removals_{std::move(removals)},
      tolerance_{tolerance} {
    const auto exists = [variables](Variable v) {
        return v >= 0 && static_cast<std::size_t>(v) < variables;
    };
    if (child >= variables || !std::ranges::all_of(parents_, exists)) {
        throw std::invalid_argument{"there is no such variable"};
    }
    std::vector<std::uint8_t> left(variables);
    for (const Variable v : parents_) {
        if (std::exchange(left[static_cast<std::size_t>(v)], 1) != 0) {
            throw std::invalid_argument{"a parent is named twice"};
        }
    }
    for (const Variable v : removals_) {
        if (!exists(v) || std::exchange(left[static_cast<std::size_t>(v)], 0) == 0) {
            throw std::invalid_argument{"only a parent can be removed, and only once"};
        }
    }
    total_ = moments[child * variables + child];
}

bool ShrinkingRegression::step(Watch& watch) {
    run_slice([&] {
        advance(watch);
    });
    return shares_.size() == removals_.size() + 1;
}

void ShrinkingRegression::advance(Watch& watch) {
    if (!begun_) {
        begin();
        begun_ = true;
    }
    if (!factored_) {
        finish_factor(factor_.factorise(watch));
        factored_ = true;
    }
    while (shares_.size() <= removals_.size()) {
        if (removed_ < shares_.size()) remove_next();
        describe(watch);
        watch.poll();
    }
}

void ShrinkingRegression::begin() {
    const std::size_t k = parents_.size();
    factor_.resize(k);
    solved_.resize(k);
    for (std::size_t a = 0; a < k; ++a) {
        const auto i = static_cast<std::size_t>(parents_[a]);
        for (std::size_t b = a; b < k; ++b) {
            const auto j = static_cast<std::size_t>(parents_[b]);
            factor_.row(a)[b - a] = moments_[j * variables_ + i];
        }
        solved_[a] = moments_[i * variables_ + child_];
    }
}

void ShrinkingRegression::finish_factor(bool independent) {
    independent_ = independent && total_ > 0.0;
    for (std::size_t a = 0; a < parents_.size() && independent_; ++a) {
        const auto i = static_cast<std::size_t>(parents_[a]);
        const double root = factor_.row(a)[0];
        independent_ = root * root > tolerance_ * moments_[i * variables_ + i];
    }
    if (independent_) factor_.solve_lower(solved_);
}

void ShrinkingRegression::remove_next() {
    const auto at = std::ranges::find(parents_, removals_[removed_]);
    const auto position = static_cast<std::size_t>(at - parents_.begin());
    if (independent_) {
        factor_.remove(position, solved_);
        solved_.pop_back();
    }
    parents_.erase(at);
    ++removed_;
}

void ShrinkingRegression::describe(Watch& watch) {
    if (!independent_) {
        const auto stage = regress(moments_, variables_, child_, parents_, tolerance_, watch);
        weights_.insert(weights_.end(), stage.weights.begin(), stage.weights.end());
        shares_.push_back(stage.share);
        return;
    }
    double share = 1.0;
    for (const double z : solved_) share -= z * z / total_;
    const std::size_t start = weights_.size();
    weights_.insert(weights_.end(), solved_.begin(), solved_.end());
    factor_.solve_upper(std::span{weights_}.subspan(start));
    shares_.push_back(std::max(share, tolerance_));
}

}  // namespace isthmus

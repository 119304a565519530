#include "mcmc/exact_posterior.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace isthmus {

namespace {

constexpr double negligible = 1e-20;
constexpr std::int32_t out_of_range = 1 << 30;
constexpr std::size_t between_polls = std::size_t{1} << 12;

}  // namespace

ExactPosterior::ExactPosterior(std::shared_ptr<FamilyWeights> weights)
    : weights_{std::move(weights)},
      size_{weights_->size()},
      before_{std::size_t{1} << size_},
      after_{std::size_t{1} << size_},
      before_exponents_{std::size_t{1} << size_},
      after_exponents_{std::size_t{1} << size_},
      outside_{size_},
      unique_(size_),
      edges_{size_, size_},
      ancestors_{size_, size_},
      sums_(size_) {}

bool ExactPosterior::step(Watch& watch) {
    run_slice([&] {
        if (stage_ == Stage::weigh) {
            if (!weights_->step(watch)) return;
            stage_ = Stage::bound_before;
        }
        while (!done()) advance(watch);
    });
    return done();
}

void ExactPosterior::advance(Watch& watch) {
    const Word all = everything();
    for (; next_ <= all; watch.poll()) {
        const Word up = next_;
        const Word down = all ^ next_;
        switch (stage_) {
            case Stage::bound_before: bound_before(up); break;
            case Stage::bound_after: bound_after(down); break;
            case Stage::prune: prune(up); break;
            case Stage::before: push_before(up, watch); break;
            default: pull_after(down, watch); break;
        }
        ++next_;
    }
    next_ = 0;
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
    if (stage_ == Stage::prune) {
        // Every graph has an order, and at most d! of them; the best order has weight 1 at least.
        const double orders = before_.data()[all];
        const double fewest = std::max(1.0, orders / std::tgamma(static_cast<double>(size_) + 1.0));
        least_ = orders > 0.0 ? negligible * fewest : std::numeric_limits<double>::infinity();
        total_exponent_ = before_exponents_.data()[all];
    }
}

/// Sums over the orders of the set, which counts each graph at least once, and the exponent of the
/// best of them.
void ExactPosterior::bound_before(Word set) {
    double& sum = before_.data()[set];
    std::int32_t& exponent = before_exponents_.data()[set];
    if (set == 0) {
        sum = 1.0;
        return;
    }
    exponent = std::numeric_limits<std::int32_t>::min();
    for (Word left = set; left != 0; left &= left - 1) {
        const auto v = static_cast<std::size_t>(std::countr_zero(left));
        const Word rest = set ^ (Word{1} << v);
        exponent = std::max(exponent, before_exponents_.data()[rest] + weights_->exponent(v, rest));
    }
    for (Word left = set; left != 0; left &= left - 1) {
        const auto v = static_cast<std::size_t>(std::countr_zero(left));
        const Word rest = set ^ (Word{1} << v);
        sum += before_.data()[rest] * weights_->sum(v, rest) *
               wide::power(std::int64_t{before_exponents_.data()[rest]} +
                           weights_->exponent(v, rest) - exponent);
    }
}

void ExactPosterior::bound_after(Word set) {
    double& sum = after_.data()[set];
    std::int32_t& exponent = after_exponents_.data()[set];
    const Word outside = everything() ^ set;
    if (outside == 0) {
        sum = 1.0;
        return;
    }
    exponent = std::numeric_limits<std::int32_t>::min();
    for (Word left = outside; left != 0; left &= left - 1) {
        const auto v = static_cast<std::size_t>(std::countr_zero(left));
        const Word more = set | (Word{1} << v);
        exponent = std::max(exponent, after_exponents_.data()[more] + weights_->exponent(v, set));
    }
    for (Word left = outside; left != 0; left &= left - 1) {
        const auto v = static_cast<std::size_t>(std::countr_zero(left));
        const Word more = set | (Word{1} << v);
        sum += after_.data()[more] * weights_->sum(v, set) *
               wide::power(std::int64_t{after_exponents_.data()[more]} + weights_->exponent(v, set) -
                           exponent);
    }
}

void ExactPosterior::prune(Word set) {
    const double bound = before_.data()[set] * after_.data()[set] *
                         wide::power(std::int64_t{before_exponents_.data()[set]} +
                                     after_exponents_.data()[set] - total_exponent_);
    const bool kept = bound >= least_;
    if (kept) {
        ++alive_;
    } else {
        // With these, every product that reaches the set becomes 0.
        before_exponents_.data()[set] = out_of_range;
        after_exponents_.data()[set] = -out_of_range;
    }
    before_.data()[set] = kept && set == 0 ? 1.0 : 0.0;
    after_.data()[set] = kept && set == everything() ? 1.0 : 0.0;
}

void ExactPosterior::enter(Word set, double seed, std::size_t factors) {
    if (entered_) return;
    outside_.enter(*weights_, set);
    outside_.multiply(seed, factors);
    position_ = 0;
    folds_ = outside_.nodes.size();
    entered_ = true;
}

void ExactPosterior::push_before(Word set, Watch& watch) {
    double& own = before_.data()[set];
    own = std::max(own, 0.0);  // rounding, where the set is as good as impossible
    if (own == 0.0) return;
    const std::size_t free = size_ - static_cast<std::size_t>(std::popcount(set));
    enter(set, -own, free);
    outside_.products.data()[0] = 0.0;
    const std::int64_t exponent = before_exponents_.data()[set];
    while (position_ < std::size_t{1} << free) {
        position_ += outside_.push(position_, before_.data(), before_exponents_.data(), exponent);
        if (position_ % between_polls == 0) watch.poll();
    }
    entered_ = false;
}

void ExactPosterior::pull_after(Word set, Watch& watch) {
    double& own = after_.data()[set];
    if (set == everything() || before_.data()[set] == 0.0) return;
    const std::size_t free = size_ - static_cast<std::size_t>(std::popcount(set));
    enter(set, 1.0, free - 1);
    const std::int64_t exponent = after_exponents_.data()[set];
    while (position_ < std::size_t{1} << free) {
        position_ += outside_.pull(position_, after_.data(), after_exponents_.data(), exponent);
        if (position_ % between_polls == 0) watch.poll();
    }
    double& sum = outside_.values.data()[0];
    if (folds_ == free) sum = 0.0;  // R is not empty
    while (folds_ > 0) {
        const std::size_t k = folds_ - 1;
        unique_[k] = -outside_.negated[k] * outside_.fold(k);
        --folds_;
        if (std::size_t{1} << k >= between_polls) watch.poll();
    }
    entered_ = false;
    own = std::max(-sum, 0.0);
    if (set == 0) total_ = own;
    add_probabilities(set, before_.data()[set] * wide::power(before_exponents_.data()[set] +
                                                             exponent - total_exponent_));
}

void ExactPosterior::add_probabilities(Word set, double factor) {
    for (std::size_t k = 0; k < outside_.nodes.size(); ++k) {
        const double weight = factor * unique_[k];
        if (!(weight > least_)) continue;
        const std::size_t v = outside_.nodes[k];
        sums_[v] += weight;
        for (const std::size_t u : outside_.nodes) ancestors_.row(v)[u] += weight;
        const double sum = weights_->sum(v, set);
        const std::int64_t exponent = weights_->exponent(v, set);
        for (Word left = set; left != 0; left &= left - 1) {
            const auto u = static_cast<std::size_t>(std::countr_zero(left));
            const Word without = set ^ (Word{1} << u);
            const double rest = weights_->sum(v, without) *
                                wide::power(weights_->exponent(v, without) - exponent);
            edges_.row(u)[v] += weight * std::max(1.0 - rest / sum, 0.0);
        }
    }
}

double ExactPosterior::progress() const {
    const double part = static_cast<double>(next_) / static_cast<double>(Word{1} << size_);
    switch (stage_) {
        case Stage::weigh: return 0.2 * weights_->progress();
        case Stage::before: return 0.25 + 0.35 * part;
        case Stage::after: return 0.6 + 0.4 * part;
        case Stage::done: return 1.0;
        default: return 0.2;
    }
}

double ExactPosterior::log_total() const {
    if (!(total_ > 0.0)) return -std::numeric_limits<double>::infinity();
    double log = std::log(total_) + 8.0 * std::numbers::ln2 * total_exponent_;
    for (std::size_t v = 0; v < size_; ++v) log += weights_->largest(v);
    return log;
}

double ExactPosterior::error() const {
    double most = 0.0;
    for (const double sum : sums_) most = std::max(most, std::abs(sum / total_ - 1.0));
    return most;
}

}  // namespace isthmus

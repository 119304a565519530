#include "mcmc/family_weights.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "core/simd.hpp"

namespace isthmus {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr double unit = 8.0 * std::numbers::ln2;
// The upper part has 24 bits, so that its product with an exponent is exact.
constexpr double unit_high = static_cast<double>(static_cast<float>(unit));
constexpr double unit_low = unit - unit_high;

/// Adds the sums of the sets without one element to those with it.
ISTHMUS_CLONES void add_pairs(double* sums, std::int32_t* exponents, std::size_t half) {
    for (std::size_t i = 0; i < half; ++i) {
        const std::int32_t without = exponents[i];
        const std::int32_t with = exponents[i + half];
        const std::int32_t larger = std::max(without, with);
        sums[i + half] = sums[i + half] * wide::power(std::int64_t{with} - larger) +
                         sums[i] * wide::power(std::int64_t{without} - larger);
        exponents[i + half] = larger;
    }
}

}  // namespace

FamilyWeights::FamilyWeights(std::shared_ptr<const LocalScore> score, const Rules& rules)
    : score_{std::move(score)}, rules_{rules}, size_{score_->size()} {
    if (size_ == 0 || size_ > most) {
        throw std::invalid_argument{"all parent sets are listed for 1 to 25 nodes only"};
    }
    if (rules_.size() != size_) throw std::invalid_argument{"the rules are for other nodes"};
    logs_.resize(size_);
    sums_.resize(size_);
    exponents_.resize(size_);
    largest_.resize(size_);
}

double FamilyWeights::progress() const {
    if (done()) return 1.0;
    const double part = optional_.empty() || stage_ == Stage::begin
                            ? 0.0
                            : static_cast<double>(base_) /
                                  static_cast<double>(Word{1} << optional_.size());
    return (static_cast<double>(child_) + 0.9 * std::min(part, 1.0)) / static_cast<double>(size_);
}

bool FamilyWeights::step(Watch& watch) {
    try {
        while (!done()) {
            if (stage_ == Stage::begin) begin_child();
            if (stage_ == Stage::score) score_child(watch);
            add_up(watch);
            ++child_;
            stage_ = Stage::begin;
            watch.poll();
        }
    } catch (const Paused&) {
        // All that was computed is kept: the next step goes on from here.
    }
    return done();
}

void FamilyWeights::begin_child() {
    const auto child = static_cast<Variable>(child_);
    const std::size_t entries = std::size_t{1} << (size_ - 1);
    logs_[child_] = ZeroedArray<double>{entries};
    sums_[child_] = ZeroedArray<double>{entries};
    exponents_[child_] = ZeroedArray<std::int32_t>{entries};
    std::ranges::fill(logs_[child_].span(), minus_infinity);
    required_ = 0;
    for (const Variable u : rules_.required(child)) required_ |= Word{1} << u;
    optional_.clear();
    for (std::size_t u = 0; u < size_; ++u) {
        const bool taken = u == child_ || (required_ >> u & 1) != 0;
        if (!taken && rules_.forbidden(child)[u] == 0) optional_.push_back(static_cast<Variable>(u));
    }
    const auto fixed = static_cast<std::size_t>(std::popcount(required_));
    room_ = rules_.max_parents() > fixed ? rules_.max_parents() - fixed : 0;
    base_ = 0;
    bit_ = 0;
    stage_ = Stage::score;
}

void FamilyWeights::score_child(Watch& watch) {
    const auto child = static_cast<Variable>(child_);
    const std::size_t k = optional_.size();
    for (const Word end = Word{1} << k; base_ < end;) {
        // A set is extended by elements after its last only, so each is scored once.
        const auto next = static_cast<std::size_t>(std::bit_width(base_));
        const auto members = static_cast<std::size_t>(std::popcount(base_));
        const bool extended = next < k && members < room_;
        if (base_ == 0 || extended) {
            Word set = required_;
            for (Word left = base_; left != 0; left &= left - 1) {
                set |= Word{1} << optional_[static_cast<std::size_t>(std::countr_zero(left))];
            }
            parents_.clear();
            for (Word left = set; left != 0; left &= left - 1) {
                parents_.push_back(std::countr_zero(left));
            }
            const Variables candidates =
                extended ? Variables{optional_}.subspan(next) : Variables{};
            values_.resize(candidates.size() + 1);
            score_->extensions(child, parents_, candidates, values_, watch);
            for (const double value : values_) {
                if (!(value < std::numeric_limits<double>::infinity())) {
                    throw std::invalid_argument{"a score is infinite or not a number"};
                }
            }
            double* const logs = logs_[child_].data();
            logs[place(child_, set)] = values_[0];
            for (std::size_t i = 0; i < candidates.size(); ++i) {
                logs[place(child_, set | Word{1} << candidates[i])] = values_[i + 1];
            }
        }
        ++base_;
        watch.poll();
    }
    convert();
    stage_ = Stage::add_up;
    watch.poll();
}

void FamilyWeights::convert() {
    const auto logs = logs_[child_].span();
    const double largest = *std::ranges::max_element(logs);
    largest_[child_] = largest;
    double* const sums = sums_[child_].data();
    std::int32_t* const exponents = exponents_[child_].data();
    for (std::size_t i = 0; i < logs.size(); ++i) {
        const double log = logs[i] - largest;
        const double exponent = std::floor(log / unit);
        if (!(exponent > wide::zero)) {  // also if all weights are 0
            exponents[i] = wide::zero;
            continue;
        }
        exponents[i] = static_cast<std::int32_t>(exponent);
        sums[i] = std::exp((log - exponent * unit_high) - exponent * unit_low);
    }
}

void FamilyWeights::add_up(Watch& watch) {
    double* const sums = sums_[child_].data();
    std::int32_t* const exponents = exponents_[child_].data();
    const std::size_t entries = sums_[child_].size();
    while (bit_ + 1 < size_) {
        const std::size_t half = std::size_t{1} << bit_;
        for (std::size_t i = 0; i < entries; i += 2 * half) {
            add_pairs(sums + i, exponents + i, half);
        }
        ++bit_;
        watch.poll();
    }
    normalise();
}

void FamilyWeights::normalise() {
    double* const sums = sums_[child_].data();
    std::int32_t* const exponents = exponents_[child_].data();
    for (std::size_t i = 0; i < sums_[child_].size(); ++i) {
        if (sums[i] == 0.0) {
            exponents[i] = wide::zero;
            continue;
        }
        for (; sums[i] >= 256.0; ++exponents[i]) sums[i] *= 1.0 / 256.0;
    }
}

double FamilyWeights::log_sum(std::size_t v, Word set) const {
    const double mantissa = sum(v, set);
    if (mantissa == 0.0) return minus_infinity;
    return largest_[v] + std::log(mantissa) + exponent(v, set) * unit;
}

}  // namespace isthmus

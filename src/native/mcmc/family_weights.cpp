#include "mcmc/family_weights.hpp"

#include <algorithm>
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

constexpr std::size_t sets_between_polls = std::size_t{1} << 12;

/// Adds the sums of the sets without one element to those with it, which are `half` further on.
ISTHMUS_CLONES void add_pairs(double* sums, std::int32_t* exponents, std::size_t half,
                              std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
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
    run_slice([&] {
        while (!done()) {
            if (stage_ == Stage::begin) begin_child();
            if (stage_ == Stage::score) score_child(watch);
            if (stage_ == Stage::convert) convert(watch);
            if (stage_ == Stage::add_up) add_up(watch);
            normalise(watch);
            ++child_;
            stage_ = Stage::begin;
            watch.poll();
        }
    });
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
    largest_[child_] = *std::ranges::max_element(logs_[child_].span());
    enter(Stage::convert);
    watch.poll();
}

void FamilyWeights::enter(Stage stage) {
    stage_ = stage;
    entry_ = 0;
}

void FamilyWeights::convert(Watch& watch) {
    const auto logs = logs_[child_].span();
    const double largest = largest_[child_];
    double* const sums = sums_[child_].data();
    std::int32_t* const exponents = exponents_[child_].data();
    while (entry_ < logs.size()) {
        const std::size_t i = entry_;
        const double log = logs[i] - largest;
        const double exponent = std::floor(log / unit);
        if (exponent > wide::zero) {
            exponents[i] = static_cast<std::int32_t>(exponent);
            sums[i] = std::exp((log - exponent * unit_high) - exponent * unit_low);
        } else {  // also if all weights are 0
            exponents[i] = wide::zero;
        }
        if (++entry_ % sets_between_polls == 0) watch.poll();
    }
    enter(Stage::add_up);
}

void FamilyWeights::add_up(Watch& watch) {
    double* const sums = sums_[child_].data();
    std::int32_t* const exponents = exponents_[child_].data();
    const std::size_t pairs = sums_[child_].size() / 2;
    for (; bit_ + 1 < size_; ++bit_, entry_ = 0) {
        const std::size_t half = std::size_t{1} << bit_;
        const std::size_t count = std::min(half, sets_between_polls);
        while (entry_ < pairs) {
            const std::size_t first = entry_ / half * 2 * half + entry_ % half;
            add_pairs(sums + first, exponents + first, half, count);
            entry_ += count;
            if (entry_ % sets_between_polls == 0) watch.poll();
        }
    }
    enter(Stage::normalise);
}

void FamilyWeights::normalise(Watch& watch) {
    double* const sums = sums_[child_].data();
    std::int32_t* const exponents = exponents_[child_].data();
    while (entry_ < sums_[child_].size()) {
        const std::size_t i = entry_;
        if (sums[i] == 0.0) exponents[i] = wide::zero;
        for (; sums[i] >= 256.0; ++exponents[i]) sums[i] *= 1.0 / 256.0;
        if (++entry_ % sets_between_polls == 0) watch.poll();
    }
}

double FamilyWeights::log_sum(std::size_t v, Word set) const {
    const double mantissa = sum(v, set);
    if (mantissa == 0.0) return minus_infinity;
    return largest_[v] + std::log(mantissa) + exponent(v, set) * unit;
}

}  // namespace isthmus

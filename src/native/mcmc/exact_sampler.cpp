#include "mcmc/exact_sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/simd.hpp"

namespace isthmus {

namespace {

constexpr std::size_t listed = 4096;  // heavy parent sets of a node

ISTHMUS_CLONES double dot(const double* a, const double* b, std::size_t count) {
    std::array<double, 8> part{};
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (std::size_t j = 0; j < 8; ++j) part[j] += a[i + j] * b[i + j];
    }
    for (; i < count; ++i) part[i & 7] += a[i] * b[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

ISTHMUS_CLONES void fold_to(double* to, const double* from, double factor, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i] + factor * from[i + count];
}

}  // namespace

ExactSampler::ExactSampler(std::shared_ptr<ExactPosterior> posterior, std::uint64_t seed)
    : posterior_{std::move(posterior)}, random_{seed} {
    if (!posterior_->done()) throw std::invalid_argument{"the posterior is not computed yet"};
    if (!(posterior_->after(0) > 0.0)) throw std::invalid_argument{"no graph has any weight"};
    levels_ = ZeroedArray<double>{std::size_t{2} << size()};
    decided_ = ZeroedArray<double>{std::size_t{1} << size()};
    family_.resize(size());
}

bool ExactSampler::step(std::size_t draws, Watch& watch) {
    run_slice([&] {
        while (heavy_.size() < size()) {
            list_heavy(heavy_.size());
            watch.poll();
        }
        while (scores_.size() < draws) {
            while (!draw()) {}
            double total = 0.0;
            for (std::size_t v = 0; v < size(); ++v) {
                parents_.push_back(family_[v]);
                total += posterior_->weights()->log_weight(v, family_[v]);
            }
            scores_.push_back(total);
            watch.poll();
        }
    });
    return scores_.size() >= draws;
}

void ExactSampler::list_heavy(std::size_t v) {
    const FamilyWeights& weights = *posterior_->weights();
    const Word own = Word{1} << v;
    std::vector<Word> sets(std::size_t{1} << (size() - 1));
    for (std::size_t i = 0; i < sets.size(); ++i) sets[i] = (i & (own - 1)) | (i & ~(own - 1)) << 1;
    const auto heavier = [&](Word a, Word b) {
        const double x = weights.log_weight(v, a);
        const double y = weights.log_weight(v, b);
        return x > y || (x == y && a < b);
    };
    const std::size_t count = std::min(listed, sets.size());
    const auto end = sets.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(sets.begin(), end - 1, sets.end(), heavier);
    std::sort(sets.begin(), end, heavier);
    Heavy heavy;
    heavy.sets.assign(sets.begin(), end);
    for (const Word set : heavy.sets) heavy.logs.push_back(weights.log_weight(v, set));
    heavy_.push_back(std::move(heavy));
}

/// Draws a graph; false if rounding led to a state without completions, which then starts again.
bool ExactSampler::draw() {
    const Word all = (Word{1} << size()) - 1;
    Word last = 0;
    for (Word placed = 0; placed != all;) {
        const Word layer = draw_layer(placed, last);
        if (layer == 0) return false;
        for (Word left = layer; left != 0; left &= left - 1) {
            const auto v = static_cast<std::size_t>(std::countr_zero(left));
            family_[v] = draw_parents(v, placed, last);
        }
        placed |= layer;
        last = layer;
        if (!(posterior_->after(placed) > 0.0)) return false;
    }
    return true;
}

double ExactSampler::sum_within(std::size_t v, Word part, Word whole) const {
    const FamilyWeights& weights = *posterior_->weights();
    return weights.sum(v, part) *
           wide::power(std::int64_t{weights.exponent(v, part)} - weights.exponent(v, whole));
}

/// Fills the levels for the nodes outside of the placed ones.
void ExactSampler::read_levels(Word placed, Word last) {
    const FamilyWeights& weights = *posterior_->weights();
    const std::size_t free = nodes_.size();
    double* const top = levels_.data() + (std::size_t{1} << free);
    const std::int64_t own = posterior_->after_exponent(placed);
    if (placed == 0 && !first_.empty()) {
        std::ranges::copy(first_, top);
    } else {
        exponents_.assign(std::size_t{1} << free, 0);
        std::vector<Word> sets(std::size_t{1} << free, placed);
        for (std::size_t k = 0; k < free; ++k) {
            const std::size_t half = std::size_t{1} << k;
            const std::int32_t exponent = weights.exponent(nodes_[k], placed);
            for (std::size_t i = 0; i < half; ++i) {
                exponents_[half + i] = exponents_[i] + exponent;
                sets[half + i] = sets[i] | Word{1} << nodes_[k];
            }
        }
        for (std::size_t i = 0; i < sets.size(); ++i) {
            top[i] = posterior_->after(sets[i]) *
                     wide::power(std::int64_t{exponents_[i]} +
                                 posterior_->after_exponent(sets[i]) - own);
        }
        if (placed == 0) first_.assign(top, top + sets.size());
    }
    for (std::size_t k = free; k-- > 0;) {
        const std::size_t half = std::size_t{1} << k;
        // No layer precedes the first, so nothing is known of its undecided nodes.
        const double factor = placed == 0 ? 0.0 : -sum_within(nodes_[k], placed & ~last, placed);
        fold_to(levels_.data() + half, levels_.data() + 2 * half, factor, half);
    }
}

Word ExactSampler::draw_layer(Word placed, Word last) {
    nodes_.clear();
    for (std::size_t u = 0; u < size(); ++u) {
        if ((placed >> u & 1) == 0) nodes_.push_back(u);
    }
    read_levels(placed, last);
    Word layer = 0;
    double* const decided = decided_.data();
    decided[0] = 1.0;
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
        const std::size_t u = nodes_[k];
        const std::size_t half = std::size_t{1} << k;
        const double* const level = levels_.data() + 2 * half;
        const double without = dot(decided, level, half);
        const double with = dot(decided, level + half, half);
        const double any = posterior_->weights()->sum(u, placed);
        const double earlier = placed == 0 ? 0.0 : sum_within(u, placed & ~last, placed);
        const double in_layer = std::max((any - earlier) * with, 0.0);
        const double not_in_layer = std::max(without - any * with, 0.0);
        const double total = in_layer + not_in_layer;
        if (!(total > 0.0)) return 0;
        const bool chosen = uniform() * total < in_layer;
        // Divided by the weight of the decision, so that products of many stay in range.
        const double scale = 1.0 / (chosen ? in_layer : not_in_layer);
        for (std::size_t i = 0; i < half; ++i) {
            decided[half + i] = decided[i] * scale * (chosen ? any - earlier : -any);
            decided[i] = chosen ? 0.0 : decided[i] * scale;
        }
        if (chosen) layer |= Word{1} << u;
    }
    return layer;
}

Word ExactSampler::draw_parents(std::size_t v, Word placed, Word last) {
    if (placed == 0) return 0;
    const FamilyWeights& weights = *posterior_->weights();
    const double log_sum = weights.log_sum(v, placed);
    double left = uniform() * std::max(1.0 - sum_within(v, placed & ~last, placed) /
                                                 weights.sum(v, placed), 0.0);
    const Heavy& heavy = heavy_[v];
    Word chosen = last & (~last + 1);  // if nothing has a weight, which rounding alone can bring
    for (std::size_t i = 0; i < heavy.sets.size(); ++i) {
        const Word set = heavy.sets[i];
        if ((set & ~placed) != 0 || (set & last) == 0) continue;
        const double weight = std::exp(heavy.logs[i] - log_sum);
        if (weight > 0.0) chosen = set;
        left -= weight;
        if (left < 0.0) return chosen;
    }
    if (heavy.sets.size() < listed) return chosen;
    const double lightest = heavy.logs.back();
    for (Word set = placed; set != 0; set = (set - 1) & placed) {
        const double log = weights.log_weight(v, set);
        if (!(log < lightest) || (set & last) == 0) continue;
        const double weight = std::exp(log - log_sum);
        if (weight > 0.0) chosen = set;
        left -= weight;
        if (left < 0.0) break;
    }
    return chosen;
}

}  // namespace isthmus

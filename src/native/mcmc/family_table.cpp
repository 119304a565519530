#include "mcmc/family_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "mcmc/weights.hpp"

namespace isthmus {

namespace {

/// Weights further apart than this are summed by their logarithms: exp(-600) is far from the
/// smallest number, so that sums lose nothing.
constexpr double widest = 600.0;

}  // namespace

FamilyTable::FamilyTable(Variable child, std::vector<Variable> candidates,
                         std::vector<Variable> outside, Variables required,
                         std::size_t max_parents)
    : child_{child},
      candidates_{std::move(candidates)},
      outside_{std::move(outside)},
      max_parents_{std::max(max_parents, required.size())},
      rows_{std::size_t{1} << candidates_.size()},
      width_{outside_.size() + 1} {
    for (const Variable parent : required) {
        const auto place = std::ranges::find(candidates_, parent) - candidates_.begin();
        required_ |= std::uint32_t{1} << place;
    }
}

void FamilyTable::build(const LocalScore& score, Watch& watch) {
    if (stage_ == Stage::scoring) {
        if (sums_.empty()) sums_.assign(rows_ * width_, none);
        while (next_ < rows_) {
            score_subset(score, watch);
            ++next_;
            watch.poll();
        }
        stage_ = Stage::weighting;
    }
    if (stage_ == Stage::weighting) weigh();
    if (stage_ == Stage::adding) add_subsets(watch);
    if (stage_ == Stage::scaling) scale_rows();
}

/// Scores the extensions of subset `next_`. Sets of full size were scored as extensions.
void FamilyTable::score_subset(const LocalScore& score, Watch& watch) {
    const auto size = static_cast<std::size_t>(std::popcount(next_));
    if (size >= max_parents_ && size > 0) return;
    const std::size_t k = candidates_.size();
    const auto first = static_cast<std::size_t>(std::bit_width(next_));
    parents_.clear();
    for (std::size_t i = 0; i < first; ++i) {
        if ((next_ >> i & 1) != 0) parents_.push_back(candidates_[i]);
    }
    extensions_.clear();
    if (max_parents_ > 0) {
        extensions_.assign(candidates_.begin() + static_cast<std::ptrdiff_t>(first),
                           candidates_.end());
        extensions_.insert(extensions_.end(), outside_.begin(), outside_.end());
    }
    scored_.resize(extensions_.size() + 1);
    score.extensions(child_, parents_, extensions_, scored_, watch);
    if (next_ == 0) sums_[0] = scored_[0];
    if (max_parents_ == 0) return;
    for (std::size_t i = first; i < k; ++i) {
        sums_[(next_ | std::size_t{1} << i) * width_] = scored_[1 + i - first];
    }
    std::ranges::copy(std::span{scored_}.subspan(1 + k - first),
                      sums_.begin() + static_cast<std::ptrdiff_t>(next_ * width_ + 1));
}

void FamilyTable::weigh() {
    best_ = none;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        if (std::isnan(sums_[i]) || sums_[i] == -none) {
            throw std::domain_error{"a score is not a finite number"};
        }
        if ((i / width_ & required_) != required_) sums_[i] = none;
        if (sums_[i] == none) continue;
        best_ = std::max(best_, sums_[i]);
        least = std::min(least, sums_[i]);
    }
    if (best_ == none) throw std::domain_error{"a node has no parent set with a finite score"};
    linear_ = best_ - least < widest;
    for (double& value : sums_) {
        value -= best_;
        if (linear_) value = std::exp(value);
    }
    layers_.push_back(sums_);
    next_ = 0;
    stage_ = Stage::adding;
}

void FamilyTable::add_subsets(Watch& watch) {
    while (next_ < candidates_.size()) {
        if (next_ == block * layers_.size()) layers_.push_back(sums_);
        const std::size_t bit = std::size_t{1} << next_;
        for (std::size_t row = 0; row < rows_; ++row) {
            if ((row & bit) == 0) continue;
            double* const to = sums_.data() + row * width_;
            const double* const from = sums_.data() + (row ^ bit) * width_;
            for (std::size_t c = 0; c < width_; ++c) {
                to[c] = linear_ ? to[c] + from[c] : log_add(to[c], from[c]);
            }
        }
        ++next_;
        watch.poll();
    }
    stage_ = Stage::scaling;
}

void FamilyTable::scale_rows() {
    if (!linear_) {
        shift_.resize(rows_);
        for (std::size_t row = 0; row < rows_; ++row) {
            const std::span values{sums_.data() + row * width_, width_};
            const double top = std::ranges::max(values);
            shift_[row] = top == none ? 0.0 : top;
            for (double& value : values) value = std::exp(value - shift_[row]);
        }
    }
    stage_ = Stage::done;
}

std::uint32_t FamilyTable::index(std::span<const Word> set) const {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        const auto v = static_cast<std::size_t>(candidates_[i]);
        bits |= static_cast<std::uint32_t>(set[v / 64] >> (v % 64) & 1) << i;
    }
    return bits;
}

WeightSum FamilyTable::sum(std::span<const Word> allowed) const {
    const std::size_t row = index(allowed);
    const double* const values = sums_.data() + row * width_;
    // Four sums at a time: each addition waits for the one before it.
    std::array<double, 4> part{values[0], 0.0, 0.0, 0.0};
    for (std::size_t c = 1; c < width_; ++c) {
        const auto v = static_cast<std::size_t>(outside_[c - 1]);
        part[c % 4] += (allowed[v / 64] >> (v % 64) & 1) != 0 ? values[c] : 0.0;
    }
    const double total = (part[0] + part[1]) + (part[2] + part[3]);
    return {linear_ ? 0.0 : shift_[row], total};
}

double FamilyTable::total(std::span<const Word> allowed) const {
    const WeightSum value = sum(allowed);
    if (value.mantissa > least_mantissa) return value.shift + std::log(value.mantissa);
    // What is tiny beside the rest of its row was rounded to 0.
    double total = none;
    for (const Part& part : divide(filter(allowed, {}))) total = log_add(total, part.log_weight);
    return total;
}

double FamilyTable::restricted(std::span<const Word> allowed, std::span<const Word> wanted) const {
    thread_local std::vector<Word> rest;
    rest.resize(allowed.size());
    for (std::size_t w = 0; w < rest.size(); ++w) rest[w] = allowed[w] & ~wanted[w];
    return difference(sum(allowed), sum(rest), allowed, wanted);
}

double FamilyTable::difference(WeightSum more, WeightSum less, std::span<const Word> allowed,
                               std::span<const Word> wanted) const {
    const double scale = less.shift == more.shift ? 1.0 : std::exp(less.shift - more.shift);
    const double rest = more.mantissa - less.mantissa * scale;
    if (rest > cancelled * more.mantissa && rest > least_mantissa) {
        return more.shift + std::log(rest);
    }
    double total = none;
    for (const Part& part : divide(filter(allowed, wanted))) {
        total = log_add(total, part.log_weight);
    }
    return total;
}

void FamilyTable::parents(const Family& family, std::span<Word> out) const {
    std::ranges::fill(out, 0);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if ((family.inner >> i & 1) != 0) add(out, candidates_[i]);
    }
    if (family.column > 0) add(out, outside_[family.column - 1]);
}

}  // namespace isthmus

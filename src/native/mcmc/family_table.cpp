#include "mcmc/family_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "mcmc/log_sum.hpp"

namespace isthmus {

namespace {

constexpr double none = -std::numeric_limits<double>::infinity();
/// Weights further apart than this are summed by their logarithms: exp(-600) is far from the
/// smallest number, so that sums lose nothing.
constexpr double widest = 600.0;
constexpr double least_mantissa = 1e-280;
/// A difference smaller than this share of its terms has lost too many digits.
constexpr double cancelled = 1e-11;

/// Calls `visit` for every subset of a set.
template <class Visit>
void for_each_subset(std::uint32_t set, Visit&& visit) {
    for (std::uint32_t subset = set;; subset = (subset - 1) & set) {
        visit(subset);
        if (subset == 0) return;
    }
}

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
    double total = values[0];
    for (std::size_t c = 1; c < width_; ++c) {
        const auto v = static_cast<std::size_t>(outside_[c - 1]);
        total += (allowed[v / 64] >> (v % 64) & 1) != 0 ? values[c] : 0.0;
    }
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
    std::vector<Word> rest(allowed.size());
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

FamilyTable::Filter FamilyTable::filter(std::span<const Word> allowed,
                                        std::span<const Word> wanted) const {
    Filter filter{.allowed = index(allowed),
                  .wanted = wanted.empty() ? 0 : index(wanted),
                  .column = std::vector<std::uint8_t>(width_)};
    filter.column[0] = wanted.empty() ? 2 : 1;
    for (std::size_t c = 1; c < width_; ++c) {
        if (!has(allowed, outside_[c - 1])) continue;
        filter.column[c] = wanted.empty() || has(wanted, outside_[c - 1]) ? 2 : 1;
    }
    return filter;
}

WeightSum FamilyTable::at(std::size_t layer, std::uint32_t row, std::uint32_t column) const {
    const std::size_t place = row * width_ + column;
    if (layer == layers_.size()) return {linear_ ? 0.0 : shift_[row], sums_[place]};
    const double value = layers_[layer][place];
    return linear_ ? WeightSum{0.0, value} : WeightSum{value, 1.0};
}

std::vector<FamilyTable::Part> FamilyTable::divide(const Filter& filter) const {
    std::vector<Part> parts;
    for (std::uint32_t c = 0; c < width_; ++c) {
        if (filter.column[c] == 0) continue;
        divide(filter, {.fixed = 0, .column = c, .layer = layers_.size(), .log_weight = 0.0},
               parts);
    }
    return parts;
}

/// Fixes the members in one more block. A part whose members include a wanted one is complete; a
/// part that can have none is left out.
void FamilyTable::divide(const Filter& filter, const Part& part, std::vector<Part>& parts) const {
    const std::size_t layer = part.layer - 1;
    const std::uint32_t low = (std::uint32_t{1} << (block * layer)) - 1;
    const std::uint32_t high =
        block * part.layer >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << (block * part.layer)) - 1;
    for_each_subset(filter.allowed & high & ~low, [&](std::uint32_t members) {
        Part next{.fixed = part.fixed | members,
                  .column = part.column,
                  .layer = layer,
                  .log_weight = none};
        if (filter.column[part.column] == 2 || (next.fixed & filter.wanted) != 0) {
            const WeightSum weight = at(layer, next.fixed | (filter.allowed & low), part.column);
            if (!(weight.mantissa > 0.0) || weight.shift == none) return;
            next.log_weight = weight.shift + std::log(weight.mantissa);
            parts.push_back(next);
        } else if ((filter.wanted & low) != 0) {
            divide(filter, next, parts);
        }
    });
}

FamilyTable::Family FamilyTable::draw(std::span<const Word> allowed, std::span<const Word> wanted,
                                      Chance& chance) const {
    const Filter which = filter(allowed, wanted);
    const std::uint32_t rest = which.allowed & ~which.wanted;
    std::vector<double> weights(width_);
    double all = 0.0;
    double kept = 0.0;
    for (std::uint32_t c = 0; c < width_; ++c) {
        if (which.column[c] == 0) continue;
        const WeightSum more = at(layers_.size(), which.allowed, c);
        weights[c] = more.mantissa;
        if (which.column[c] == 1) {
            const WeightSum less = at(layers_.size(), rest, c);
            const double scale = less.shift == more.shift ? 1.0 : std::exp(less.shift - more.shift);
            weights[c] = std::max(0.0, weights[c] - less.mantissa * scale);
        }
        all += more.mantissa;
        kept += weights[c];
    }
    if (kept > cancelled * all && kept > least_mantissa) {
        const auto column = static_cast<std::uint32_t>(chance.pick(weights));
        const Family family =
            complete({.fixed = 0, .column = column, .layer = layers_.size(), .log_weight = 0.0},
                     which.allowed, which.column[column] == 2 ? 0 : which.wanted, chance);
        if (family.score != none) return family;
    }
    const auto parts = divide(which);
    if (parts.empty()) throw std::logic_error{"there is no parent set to draw"};
    weights.clear();
    for (const Part& part : parts) weights.push_back(part.log_weight);
    return complete(parts[chance.choose(weights)], which.allowed, 0, chance);
}

FamilyTable::Family FamilyTable::complete(Part part, std::uint32_t allowed, std::uint32_t wanted,
                                          Chance& chance) const {
    std::vector<std::uint32_t> options;
    std::vector<double> weights;
    std::vector<double> shifts;
    while (part.layer > 0) {
        const std::size_t layer = part.layer - 1;
        const std::uint32_t low = (std::uint32_t{1} << (block * layer)) - 1;
        const std::uint32_t high = part.layer == layers_.size()
                                       ? ~std::uint32_t{0}
                                       : (std::uint32_t{1} << (block * part.layer)) - 1;
        options.clear();
        weights.clear();
        shifts.clear();
        for_each_subset(allowed & high & ~low, [&](std::uint32_t members) {
            const std::uint32_t fixed = part.fixed | members;
            const WeightSum more = at(layer, fixed | (allowed & low), part.column);
            double weight = more.mantissa;
            if (wanted != 0 && (fixed & wanted) == 0) {
                const WeightSum less = at(layer, fixed | (allowed & ~wanted & low), part.column);
                const double scale =
                    less.shift == more.shift ? 1.0 : std::exp(less.shift - more.shift);
                weight = std::max(0.0, weight - less.mantissa * scale);
            }
            options.push_back(members);
            weights.push_back(weight);
            shifts.push_back(more.shift);
        });
        if (!linear_) {
            const double top = std::ranges::max(shifts);
            for (std::size_t i = 0; i < weights.size(); ++i) {
                weights[i] = weights[i] > 0.0 ? weights[i] * std::exp(shifts[i] - top) : 0.0;
            }
        }
        // Rounding may have left a part that has no parent set at all.
        if (!(std::ranges::max(weights) > 0.0)) return {.inner = 0, .column = 0, .score = none};
        part.fixed |= options[chance.pick(weights)];
        part.layer = layer;
        if ((part.fixed & wanted) != 0) wanted = 0;
    }
    const WeightSum own = at(0, part.fixed, part.column);
    return {.inner = part.fixed,
            .column = part.column,
            .score = linear_ ? std::log(own.mantissa) : own.shift};
}

void FamilyTable::parents(const Family& family, std::span<Word> out) const {
    std::ranges::fill(out, 0);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if ((family.inner >> i & 1) != 0) add(out, candidates_[i]);
    }
    if (family.column > 0) add(out, outside_[family.column - 1]);
}

}  // namespace isthmus

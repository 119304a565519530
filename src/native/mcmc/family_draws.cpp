// Sums over parts of a table, and draws from it.

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "mcmc/family_table.hpp"
#include "mcmc/weights.hpp"

namespace isthmus {

namespace {

/// Calls `visit` for every subset of a set.
template <class Visit>
void for_each_subset(std::uint32_t set, Visit&& visit) {
    for (std::uint32_t subset = set;; subset = (subset - 1) & set) {
        visit(subset);
        if (subset == 0) return;
    }
}

}  // namespace

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
    const std::uint32_t inside = index(allowed);
    const std::uint32_t inside_wanted = wanted.empty() ? 0 : index(wanted);
    const std::uint32_t rest = inside & ~inside_wanted;
    const std::size_t last = layers_.size();
    const WeightSum more = at(last, inside, 0);
    const double shift = wanted.empty() ? 0.0 : at(last, rest, 0).shift - more.shift;
    const double scale = shift == 0.0 ? 1.0 : std::exp(shift);
    thread_local std::vector<double> weights;
    weights.assign(width_, 0.0);
    double all = 0.0;
    double kept = 0.0;
    for (std::uint32_t c = 0; c < width_; ++c) {
        if (c > 0 && !has(allowed, outside_[c - 1])) continue;
        const double whole = sums_[inside * width_ + c];
        weights[c] = whole;
        if (!wanted.empty() && (c == 0 || !has(wanted, outside_[c - 1]))) {
            weights[c] = std::max(0.0, whole - sums_[rest * width_ + c] * scale);
        }
        all += whole;
        kept += weights[c];
    }
    if (kept > cancelled * all && kept > least_mantissa) {
        const auto column = static_cast<std::uint32_t>(chance.pick(weights));
        const bool free = wanted.empty() || (column > 0 && has(wanted, outside_[column - 1]));
        const Family family =
            complete({.fixed = 0, .column = column, .layer = last, .log_weight = 0.0}, inside,
                     free ? 0 : inside_wanted, chance);
        if (family.score != none) return family;
    }
    const auto parts = divide(filter(allowed, wanted));
    if (parts.empty()) throw std::logic_error{"there is no parent set to draw"};
    weights.clear();
    for (const Part& part : parts) weights.push_back(part.log_weight);
    return complete(parts[chance.choose(weights)], inside, 0, chance);
}

FamilyTable::Family FamilyTable::complete(Part part, std::uint32_t allowed, std::uint32_t wanted,
                                          Chance& chance) const {
    constexpr std::size_t most = std::size_t{1} << block;
    std::array<std::uint32_t, most> options;
    std::array<double, most> weights;
    std::array<double, most> shifts;
    while (part.layer > 0) {
        const std::size_t layer = part.layer - 1;
        const std::uint32_t low = (std::uint32_t{1} << (block * layer)) - 1;
        const std::uint32_t high = part.layer == layers_.size()
                                       ? ~std::uint32_t{0}
                                       : (std::uint32_t{1} << (block * part.layer)) - 1;
        std::size_t count = 0;
        for_each_subset(allowed & high & ~low, [&](std::uint32_t members) {
            const std::uint32_t fixed = part.fixed | members;
            const WeightSum more = at(layer, fixed | (allowed & low), part.column);
            double weight = more.shift == none ? 0.0 : more.mantissa;
            if (wanted != 0 && (fixed & wanted) == 0 && weight > 0.0) {
                const WeightSum less = at(layer, fixed | (allowed & ~wanted & low), part.column);
                const double scale =
                    less.shift == more.shift ? 1.0 : std::exp(less.shift - more.shift);
                weight = std::max(0.0, weight - less.mantissa * scale);
            }
            options[count] = members;
            weights[count] = weight;
            shifts[count++] = more.shift;
        });
        const std::span all{weights.data(), count};
        if (!linear_) {
            const double top = *std::max_element(shifts.begin(), shifts.begin() + count);
            for (std::size_t i = 0; i < count; ++i) {
                if (all[i] > 0.0) all[i] *= std::exp(shifts[i] - top);
            }
        }
        // Rounding may have left a part that has no parent set at all.
        if (!(std::ranges::max(all) > 0.0)) return {.inner = 0, .column = 0, .score = none};
        part.fixed |= options[chance.pick(all)];
        part.layer = layer;
        if ((part.fixed & wanted) != 0) wanted = 0;
    }
    const WeightSum own = at(0, part.fixed, part.column);
    return {.inner = part.fixed,
            .column = part.column,
            .score = linear_ ? std::log(own.mantissa) : own.shift};
}

}  // namespace isthmus

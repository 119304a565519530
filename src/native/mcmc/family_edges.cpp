// Probabilities of single parents, given the nodes from which a parent set is drawn.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "mcmc/family_table.hpp"
#include "mcmc/weights.hpp"

namespace isthmus {

namespace {

/// Below this share of its terms, a difference is replaced by a sum: what is above is right to ten
/// digits.
constexpr double precise = 1e-6;

}  // namespace

void FamilyTable::edge_probabilities(std::span<const Word> allowed, std::span<const Word> wanted,
                                     std::span<double> out) const {
    std::ranges::fill(out, 0.0);
    if (count(allowed) == 0) return;
    const bool free = count(wanted) == 0;
    const Filter filter = this->filter(allowed, free ? std::span<const Word>{} : wanted);
    if (!edges_by_differences(filter, free, out)) edges_by_parts(filter, out);
    for (double& probability : out) probability = std::clamp(probability, 0.0, 1.0);
}

bool FamilyTable::edges_by_differences(const Filter& filter, bool free,
                                       std::span<double> out) const {
    const double shift = linear_ ? 0.0 : shift_[filter.allowed];
    const std::uint32_t rest = filter.allowed & ~filter.wanted;
    const auto scaled = [&](std::uint32_t row, double value) {
        return linear_ || value == 0.0 ? value : value * std::exp(shift_[row] - shift);
    };
    thread_local std::vector<double> every;
    thread_local std::vector<double> unwanted;
    every.resize(width_);
    unwanted.resize(width_);
    for (std::size_t c = 0; c < width_; ++c) {
        every[c] = filter.column[c] != 0 ? 1.0 : 0.0;
        unwanted[c] = filter.column[c] == 1 ? 1.0 : 0.0;
    }
    const auto weight = [&](std::uint32_t row, const std::vector<double>& columns) {
        const double* const values = sums_.data() + row * width_;
        return scaled(row, std::inner_product(columns.begin(), columns.end(), values, 0.0));
    };
    const double all = weight(filter.allowed, every);
    const double kept = free ? all : all - weight(rest, unwanted);
    if (!(kept > precise * all && kept > least_mantissa)) return false;

    for (std::size_t i = 0; i < candidates_.size(); ++i) {
        const std::uint32_t bit = std::uint32_t{1} << i;
        if ((filter.allowed & bit) == 0) continue;
        double without = weight(filter.allowed & ~bit, every);
        if (!free) without -= weight(rest & ~bit, unwanted);
        out[static_cast<std::size_t>(candidates_[i])] = 1.0 - without / kept;
    }
    for (std::size_t c = 1; c < width_; ++c) {
        if (filter.column[c] == 0) continue;
        double with = sums_[filter.allowed * width_ + c];
        if (filter.column[c] == 1) with -= scaled(rest, sums_[rest * width_ + c]);
        out[static_cast<std::size_t>(outside_[c - 1])] = with / kept;
    }
    return true;
}

void FamilyTable::edges_by_parts(const Filter& filter, std::span<double> out) const {
    const std::vector<Part> parts = divide(filter);
    double total = none;
    for (const Part& part : parts) total = log_add(total, part.log_weight);
    if (total == none) return;
    for (const Part& part : parts) {
        const double share = std::exp(part.log_weight - total);
        if (part.column > 0) out[static_cast<std::size_t>(outside_[part.column - 1])] += share;
        const std::uint32_t low = (std::uint32_t{1} << (block * part.layer)) - 1;
        const std::uint32_t row = part.fixed | (filter.allowed & low);
        for (std::size_t i = 0; i < candidates_.size(); ++i) {
            const std::uint32_t bit = std::uint32_t{1} << i;
            if ((row & bit) == 0) continue;
            double with = share;
            if ((bit & low) != 0) {
                const WeightSum without = at(part.layer, row & ~bit, part.column);
                if (without.mantissa > 0.0 && without.shift != none) {
                    with -= std::exp(without.shift + std::log(without.mantissa) - total);
                }
            }
            out[static_cast<std::size_t>(candidates_[i])] += with;
        }
    }
}

}  // namespace isthmus

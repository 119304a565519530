#include <algorithm>

#include "scoring/discrete_family.hpp"

namespace isthmus {

namespace {

// Nanoseconds, measured by benchmarks/discrete_kernel.py: an intersection, its fixed part and a
// word; a row and a cell of a histogram.
constexpr double intersection_fixed = 8.0;
constexpr double intersection_word = 0.15;
constexpr double histogram_row = 0.7;
constexpr double histogram_cell = 1.2;

}  // namespace

DiscreteFamily::DiscreteFamily(const DiscreteData& data, const CountValues& values,
                               DiscreteRoom& room, Variable child, Variables parents)
    : data_{data},
      values_{values},
      room_{room},
      child_{child},
      parents_{parents},
      child_levels_{data.levels(child)} {
    for (const Variable parent : parents) {
        configurations_ *= static_cast<double>(data.levels(parent));
    }
}

bool DiscreteFamily::list_combinations() {
    // Renumbered histograms are the better way to many configurations.
    if (!data_.weights().empty() ||
        configurations_ * static_cast<double>(child_levels_) > 16.0 * Combinations::most) {
        return false;
    }
    const auto lacks_bitmaps = [this](Variable v) { return !data_.has_bitmaps(v); };
    if (lacks_bitmaps(child_) || std::ranges::any_of(parents_, lacks_bitmaps)) return false;
    const std::size_t half = (Combinations::most + 1) * data_.words();
    const Combinations* source = nullptr;
    std::size_t turn = 1;
    // Each step writes the half of the room that the step before did not.
    const auto split_by = [&](Variable variable) {
        Combinations& target = room_.lists[turn];
        if (!split(variable, source, target, room_.maps.data() + turn * half)) return false;
        source = &target;
        turn = 1 - turn;
        return true;
    };
    for (const Variable parent : parents_) {
        if (!split_by(parent)) return false;
    }
    of_parents_ = source;
    if (!split_by(child_)) return false;
    with_child_ = source;
    return true;
}

bool DiscreteFamily::split(Variable variable, const Combinations* source, Combinations& target,
                           Word* spare) const {
    const std::size_t words = data_.words();
    const std::size_t levels = data_.levels(variable);
    const Word* const maps = data_.bitmaps(variable);
    const auto totals = data_.totals(variable);
    target.count = 0;
    for (std::size_t p = 0; p < (source == nullptr ? 1 : source->count); ++p) {
        for (std::size_t level = 0; level < levels; ++level) {
            const Word* map = maps + level * words;
            std::int64_t rows = totals[level];
            if (source != nullptr) {
                Word* const both = spare + target.count * words;
                rows = store_common(source->maps[p], map, both, words);
                map = both;
            }
            if (rows == 0) continue;
            if (target.count == Combinations::most) return false;
            target.maps[target.count] = map;
            target.rows[target.count] = rows;
            ++target.count;
        }
    }
    return true;
}

bool DiscreteFamily::bitmaps_pay(Variable candidate) const {
    if (!data_.has_bitmaps(candidate)) return false;
    const auto levels = static_cast<double>(data_.levels(candidate));
    const auto words = static_cast<double>(data_.words());
    const double seen = of_parents_ == nullptr || of_parents_->count == 0
                            ? 1.0
                            : static_cast<double>(of_parents_->count);
    const double by_bitmaps = static_cast<double>(with_child_->count) * (levels - 1.0) *
                              (intersection_fixed + intersection_word * words);
    return by_bitmaps < histogram_row * static_cast<double>(data_.rows()) +
                            histogram_cell * seen * static_cast<double>(child_levels_) * levels;
}

std::size_t DiscreteFamily::bitmap_work(Variable candidate) const {
    return with_child_->count * data_.levels(candidate) * data_.words();
}

double DiscreteFamily::base_by_bitmaps() const {
    const auto r = static_cast<double>(child_levels_);
    const CountValue f = values_.cell(r, configurations_);
    const CountValue g = values_.configuration(r, configurations_);
    double total = -values_.penalty(r, configurations_);
    for (std::size_t p = 0; p < with_child_->count; ++p) total += f(with_child_->rows[p]);
    if (of_parents_ == nullptr) return total - g(static_cast<std::int64_t>(data_.rows()));
    for (std::size_t j = 0; j < of_parents_->count; ++j) total -= g(of_parents_->rows[j]);
    return total;
}

double DiscreteFamily::extended_by_bitmaps(Variable candidate) {
    const std::size_t levels = data_.levels(candidate);
    const auto r = static_cast<double>(child_levels_);
    const double q = configurations_ * static_cast<double>(levels);
    const CountValue f = values_.cell(r, q);
    const CountValue g = values_.configuration(r, q);
    double total = -values_.penalty(r, q);

    const auto totals = data_.totals(candidate);
    const bool no_parents = of_parents_ == nullptr;
    // Without parents the counts of the child's last level follow from the candidate's totals.
    const std::size_t counted =
        no_parents && with_child_->count > 0 ? with_child_->count - 1 : with_child_->count;
    const std::size_t known = levels - 1;
    count_grid({with_child_->maps.data(), counted}, data_.bitmaps(candidate), known, data_.words(),
               room_.counts.data());
    const std::int64_t* counts = room_.counts.data();
    std::array<std::int64_t, DiscreteData::most_levels> sums;
    std::size_t p = 0;
    for (std::size_t j = 0; j < (no_parents ? 1 : of_parents_->count); ++j) {
        std::int64_t left =
            no_parents ? static_cast<std::int64_t>(data_.rows()) : of_parents_->rows[j];
        std::fill_n(sums.begin(), levels, 0);
        while (left > 0) {
            if (p == counted) {
                for (std::size_t c = 0; c < levels; ++c) {
                    total += f(totals[c] - sums[c]);
                    sums[c] = totals[c];
                }
                break;
            }
            std::int64_t rest = with_child_->rows[p];
            left -= rest;
            for (std::size_t c = 0; c < known; ++c) {
                const std::int64_t n = counts[c];
                total += f(n);
                sums[c] += n;
                rest -= n;
            }
            counts += known;
            total += f(rest);
            sums[known] += rest;
            ++p;
        }
        for (std::size_t c = 0; c < levels; ++c) total -= g(sums[c]);
    }
    return total;
}

}  // namespace isthmus

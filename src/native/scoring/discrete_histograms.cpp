#include <algorithm>

#include "core/checked.hpp"
#include "scoring/discrete_family.hpp"

namespace isthmus {

namespace {

// Tables of up to this many cells are filled by several histograms in turn.
constexpr std::size_t small_table = 512;
static_assert(small_table <= InterleavedHistogram::most_cells);

// Numbers of configurations beyond this are renumbered at once; a product with the levels of one
// more variable fits 64 bits.
constexpr std::size_t most_numbers = std::size_t{1} << 40;

/// Appends a column as the last digit of a number to each row.
void append_digit(const std::int64_t* numbers, const std::uint16_t* column, std::size_t radix,
                  std::span<std::int64_t> out) {
    const auto r = static_cast<std::int64_t>(radix);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = numbers[i] * r + column[i];
}

}  // namespace

void DiscreteFamily::number_rows(std::size_t widest, std::size_t uses, Watch& watch) {
    const auto configuration = room_.configuration.span();
    std::ranges::fill(configuration, 0);
    const std::size_t rows = data_.rows();
    numbered_ = 1;
    for (const Variable parent : parents_) {
        const std::size_t levels = data_.levels(parent);
        if (numbered_ * levels > most_numbers) numbered_ = room_.numbers.renumber(configuration);
        append_digit(configuration.data(), data_.column(parent), levels, configuration);
        numbered_ *= levels;
        watch.poll_signals();
    }
    const std::size_t cells =
        saturated_product(saturated_product(numbered_, child_levels_), widest);
    // Fewer cells pay for the renumbering after a few uses.
    if (cells > room_.table.size() || (cells > std::max(rows, small_table) && uses > 3)) {
        numbered_ = room_.numbers.renumber(configuration);
        watch.poll_signals();
    }
    const auto joint = room_.joint.span();
    append_digit(configuration.data(), data_.column(child_), child_levels_, joint);
    if (numbered_ * child_levels_ <= small_table) {
        std::ranges::transform(joint, room_.shorts.data(), [](std::int64_t number) {
            return static_cast<std::uint16_t>(number);
        });
    }
}

double DiscreteFamily::base_by_histogram(Watch& watch) {
    return by_histogram(data_.constant_column(), 1, watch);
}

double DiscreteFamily::extended_by_histogram(Variable candidate, Watch& watch) {
    return by_histogram(data_.column(candidate), data_.levels(candidate), watch);
}

void DiscreteFamily::fill_table(const std::uint16_t* column, std::size_t levels,
                                std::size_t cells) {
    const auto joint = room_.joint.span();
    const auto table = room_.table.span();
    const auto& weights = data_.weights();
    const auto radix = static_cast<std::int64_t>(levels);
    if (!weights.empty()) {
        for (std::size_t i = 0; i < joint.size(); ++i) {
            table[static_cast<std::size_t>(joint[i] * radix + column[i])] += weights[i];
        }
    } else if (cells <= small_table) {
        room_.histogram.count(room_.shorts.span(), column, levels, table.first(cells));
    } else {
        for (std::size_t i = 0; i < joint.size(); ++i) {
            ++table[static_cast<std::size_t>(joint[i] * radix + column[i])];
        }
    }
}

double DiscreteFamily::by_histogram(const std::uint16_t* column, std::size_t levels,
                                    Watch& watch) {
    const std::size_t cells = numbered_ * child_levels_ * levels;
    if (cells > std::max(2 * data_.rows(), small_table)) {
        return by_rows(column, levels, cells, watch);
    }
    const auto r = static_cast<double>(child_levels_);
    const double q = configurations_ * static_cast<double>(levels);
    const CountValue f = values_.cell(r, q);
    const CountValue g = values_.configuration(r, q);
    double total = -values_.penalty(r, q);
    // Nothing may throw from here on until the table is zero again.
    fill_table(column, levels, cells);
    const auto table = room_.table.span().first(cells);
    for (std::size_t begin = 0; begin < cells; begin += child_levels_ * levels) {
        for (std::size_t c = 0; c < levels; ++c) {
            std::int64_t here = 0;
            // No test for empty cells: it would be mispredicted, and they are worth zero.
            for (std::size_t k = 0; k < child_levels_; ++k) {
                const std::int64_t n = table[begin + k * levels + c];
                total += f(n);
                here += n;
            }
            total -= g(here);
        }
    }
    std::ranges::fill(table, 0);
    watch.poll_signals();
    return total;
}

double DiscreteFamily::by_rows(const std::uint16_t* column, std::size_t levels, std::size_t cells,
                               Watch& watch) {
    const auto r = static_cast<double>(child_levels_);
    const double q = configurations_ * static_cast<double>(levels);
    const auto keys = room_.keys.span();
    const auto table = room_.table.span();
    const auto& weights = data_.weights();
    const auto sum_over_rows = [&](const CountValue& value, const std::int64_t* numbers) {
        append_digit(numbers, column, levels, keys);
        if (cells > table.size()) room_.numbers.renumber(keys);
        watch.poll_signals();
        for (std::size_t i = 0; i < keys.size(); ++i) {
            table[static_cast<std::size_t>(keys[i])] += weights.empty() ? 1 : weights[i];
        }
        double sum = 0.0;
        for (const std::int64_t key : keys) {
            // The first visit takes the count, later ones find zero.
            std::int64_t& cell = table[static_cast<std::size_t>(key)];
            sum += value(cell);
            cell = 0;
        }
        watch.poll_signals();
        return sum;
    };
    double total = -values_.penalty(r, q);
    total += sum_over_rows(values_.cell(r, q), room_.joint.data());
    total += -sum_over_rows(values_.configuration(r, q), room_.configuration.data());
    return total;
}

}  // namespace isthmus

#include "counting/tables.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "counting/bitmaps.hpp"
#include "counting/run_counter.hpp"

namespace isthmus {

namespace {

// Nanoseconds per row, measured by benchmarks/counting.py: making one bitmap; one histogram step in
// a small and in a large table.
constexpr double pack_cost = 0.0015;
constexpr double small_cost = 0.9;
constexpr double large_cost = 2.5;
constexpr double small_cells = 8192.0;

using Flags = std::vector<std::uint8_t>;

template <class Code>
CountTables empty_tables(const CodedColumns<Code>& data, const VariableSets& sets) {
    CountTables tables;
    tables.offsets.reserve(sets.count() + 1);
    tables.offsets.push_back(0);
    for (std::size_t q = 0; q < sets.count(); ++q) {
        std::size_t cells = 1;
        for (const Variable v : sets.set(q)) cells *= data.levels(v);
        tables.offsets.push_back(tables.offsets.back() + cells);
    }
    tables.values = ZeroedArray<std::int64_t>{tables.offsets.back()};
    return tables;
}

/// For each set, whether bitmaps are the faster way.
template <class Code>
Flags choose_bitmaps(const CodedColumns<Code>& data, const VariableSets& sets,
                     CountingMethod method, LastLevel last) {
    if (method == CountingMethod::histograms || !data.weights.empty()) return Flags(sets.count());
    if (method == CountingMethod::bitmaps) return Flags(sets.count(), 1);
    Flags used(data.variables());
    for (const Variable v : sets.members()) used[static_cast<std::size_t>(v)] = 1;
    double bitmaps = 0.0;
    for (std::size_t v = 0; v < used.size(); ++v) {
        if (used[v] != 0) bitmaps += static_cast<double>(data.levels(static_cast<Variable>(v)));
    }
    // Making the bitmaps is shared by all sets.
    const double shared = pack_cost * bitmaps / static_cast<double>(sets.count());
    Flags chosen(sets.count());
    for (std::size_t q = 0; q < sets.count(); ++q) {
        double cells = 1.0;
        double steps = 1.0;
        for (const Variable v : sets.set(q)) {
            const auto levels = static_cast<double>(data.levels(v));
            cells *= levels;
            steps *= last == LastLevel::total ? levels : levels - 1.0;
        }
        const double by_bitmaps = intersection_cost() * steps + shared;
        chosen[q] = by_bitmaps < (cells <= small_cells ? small_cost : large_cost) ? 1 : 0;
    }
    return chosen;
}

Flags others(Flags chosen) {
    for (std::uint8_t& flag : chosen) flag = flag == 0 ? 1 : 0;
    return chosen;
}

bool any(const Flags& flags) {
    return std::ranges::any_of(flags, [](std::uint8_t flag) { return flag != 0; });
}

/// Along one axis, makes cells of the last level what `margin` has beyond the other levels.
/// `margin(outer, inner)` is the sum over the axis.
template <class Margin>
void fill_last_level(std::span<std::int64_t> table, std::size_t levels, std::size_t inner,
                     Margin margin) {
    for (std::size_t outer = 0; outer < table.size() / (levels * inner); ++outer) {
        const auto part = table.subspan(outer * levels * inner, levels * inner);
        const auto last = part.subspan((levels - 1) * inner);
        for (std::size_t i = 0; i < inner; ++i) {
            std::int64_t rest = margin(outer, i, last[i]);
            for (std::size_t c = 0; c + 1 < levels; ++c) rest -= part[c * inner + i];
            last[i] = rest;
        }
    }
}

/// Turns cells that hold the rows of any level into those of the last level, axis by axis.
template <class Code>
void subtract_levels(const CodedColumns<Code>& data, const VariableSets& sets, const Flags& chosen,
                     CountTables& tables, Watch& watch) {
    for (std::size_t q = 0; q < sets.count(); ++q) {
        if (chosen[q] == 0) continue;
        const Variables variables = sets.set(q);
        std::size_t inner = 1;
        for (std::size_t t = variables.size(); t-- > 0;) {
            const std::size_t levels = data.levels(variables[t]);
            fill_last_level(tables.table(q), levels, inner,
                            [](std::size_t, std::size_t, std::int64_t total) { return total; });
            inner *= levels;
        }
        watch.poll_signals();
    }
}

/// Places of sets in lexicographic order.
class SetRank {
public:
    SetRank(std::size_t variables, std::size_t size)
        : variables_{variables}, size_{size}, binomial_{variables + 1, size + 1, 0} {
        for (std::size_t n = 0; n <= variables; ++n) {
            binomial_.row(n)[0] = 1;
            for (std::size_t k = 1; k <= std::min(n, size); ++k) {
                binomial_.row(n)[k] = binomial_.row(n - 1)[k - 1] + (k < n ? binomial_.row(n - 1)[k] : 0);
            }
        }
    }

    /// The place of an ascending set without its member at `left_out`.
    [[nodiscard]] std::size_t without(Variables set, std::size_t left_out) const {
        std::size_t place = binomial_.row(variables_)[size_];
        std::size_t t = 0;
        for (std::size_t s = 0; s < set.size(); ++s) {
            if (s == left_out) continue;
            place -= binomial_.row(variables_ - 1 - static_cast<std::size_t>(set[s]))[size_ - t];
            ++t;
        }
        return place - 1;
    }

private:
    std::size_t variables_;
    std::size_t size_;
    Matrix<std::size_t> binomial_;
};

/// Fills the cells of last levels from the tables of all sets that are smaller by one.
template <class Code>
void complete_levels(const CodedColumns<Code>& data, const VariableSets& sets, const Flags& chosen,
                     const CountTables& smaller, CountTables& tables, Watch& watch) {
    const SetRank rank{data.variables(), sets.size() - 1};
    for (std::size_t q = 0; q < sets.count(); ++q) {
        if (chosen[q] == 0) continue;
        const Variables variables = sets.set(q);
        // The axes before the current one are complete. Those after it lack their last level; what
        // is written there now is overwritten when its axis comes.
        std::size_t inner = tables.table(q).size();
        for (std::size_t t = 0; t < variables.size(); ++t) {
            const std::size_t levels = data.levels(variables[t]);
            inner /= levels;
            const auto margin = smaller.table(rank.without(variables, t));
            fill_last_level(tables.table(q), levels, inner,
                            [&](std::size_t outer, std::size_t i, std::int64_t) {
                                return margin[outer * inner + i];
                            });
        }
        watch.poll_signals();
    }
}

}  // namespace

VariableSets::VariableSets(std::size_t size, std::vector<Variable> members)
    : size_{size}, members_{std::move(members)} {}

VariableSets VariableSets::all(std::size_t variables, std::size_t size) {
    std::vector<Variable> set(size);
    std::iota(set.begin(), set.end(), Variable{0});
    std::vector<Variable> members;
    while (true) {
        members.insert(members.end(), set.begin(), set.end());
        std::size_t t = size;
        while (t > 0 && set[t - 1] == static_cast<Variable>(variables - size + t - 1)) --t;
        if (t == 0) break;
        ++set[t - 1];
        for (std::size_t s = t; s < size; ++s) set[s] = set[s - 1] + 1;
    }
    return {size, std::move(members)};
}

std::vector<std::size_t> VariableSets::runs() const {
    std::vector<std::size_t> starts;
    for (std::size_t q = 0; q < count(); ++q) {
        if (q == 0 ||
            !std::ranges::equal(set(q).first(size_ - 1), set(q - 1).first(size_ - 1))) {
            starts.push_back(q);
        }
    }
    starts.push_back(count());
    return starts;
}

template <class Code>
CountTables count_tables(const CodedColumns<Code>& data, const VariableSets& sets,
                         CountingMethod method, Watch& watch) {
    CountTables tables = empty_tables(data, sets);
    const Flags chosen = choose_bitmaps(data, sets, method, LastLevel::total);
    if (any(chosen)) {
        add_by_bitmaps(data, sets, chosen, LastLevel::total, tables, watch);
        subtract_levels(data, sets, chosen, tables, watch);
    }
    if (const Flags rest = others(chosen); any(rest)) {
        add_by_histograms(data, sets, rest, tables, watch);
    }
    return tables;
}

template <class Code>
CountTables count_all_tables(const CodedColumns<Code>& data, std::size_t size,
                             CountingMethod method, Watch& watch) {
    const VariableSets sets = VariableSets::all(data.variables(), size);
    if (size == 1) return count_tables(data, sets, method, watch);
    CountTables tables = empty_tables(data, sets);
    const Flags chosen = choose_bitmaps(data, sets, method, LastLevel::none);
    if (any(chosen)) {
        const CountTables smaller = count_all_tables(data, size - 1, method, watch);
        add_by_bitmaps(data, sets, chosen, LastLevel::none, tables, watch);
        complete_levels(data, sets, chosen, smaller, tables, watch);
    }
    if (const Flags rest = others(chosen); any(rest)) {
        add_by_histograms(data, sets, rest, tables, watch);
    }
    return tables;
}

template CountTables count_tables(const CodedColumns<std::uint8_t>&, const VariableSets&,
                                  CountingMethod, Watch&);
template CountTables count_tables(const CodedColumns<std::uint16_t>&, const VariableSets&,
                                  CountingMethod, Watch&);
template CountTables count_all_tables(const CodedColumns<std::uint8_t>&, std::size_t,
                                      CountingMethod, Watch&);
template CountTables count_all_tables(const CodedColumns<std::uint16_t>&, std::size_t,
                                      CountingMethod, Watch&);

}  // namespace isthmus

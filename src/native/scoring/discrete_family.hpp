#pragma once

#include <cstddef>
#include <cstdint>

#include "core/watch.hpp"
#include "scoring/count_values.hpp"
#include "scoring/discrete_data.hpp"
#include "scoring/discrete_room.hpp"

namespace isthmus {

/// A child with its parents, while it and its extensions by one candidate are scored.
///
/// There are two ways to count. *Bitmaps*: the combinations of parents and child that the data
/// hold, made once, then one intersection for each of them and each level of a candidate; for
/// unweighted rows and few combinations. *Histograms*: one number per row for parents and child,
/// made once and renumbered to what the data hold where the table would be large, then one pass
/// over the rows per candidate.
class DiscreteFamily {
public:
    DiscreteFamily(const DiscreteData& data, const CountValues& values, DiscreteRoom& room,
                   Variable child, Variables parents);

    // By bitmaps.

    /// Lists the combinations; false if there are too many, or a variable has no bitmaps.
    [[nodiscard]] bool list_combinations();
    /// Whether bitmaps are faster than a histogram for this candidate. Combinations are listed.
    [[nodiscard]] bool bitmaps_pay(Variable candidate) const;
    [[nodiscard]] double base_by_bitmaps() const;
    [[nodiscard]] double extended_by_bitmaps(Variable candidate);
    /// Words read to score an extension, as a measure of time.
    [[nodiscard]] std::size_t bitmap_work(Variable candidate) const;

    // By histograms.

    /// Numbers the configurations, for `uses` tables with candidates of `widest` levels at most.
    void number_rows(std::size_t widest, std::size_t uses, Watch& watch);
    [[nodiscard]] double base_by_histogram(Watch& watch);
    [[nodiscard]] double extended_by_histogram(Variable candidate, Watch& watch);

private:
    [[nodiscard]] bool split(Variable variable, const Combinations* source, Combinations& target,
                             Word* spare) const;
    [[nodiscard]] double by_histogram(const std::uint16_t* column, std::size_t levels,
                                      Watch& watch);
    [[nodiscard]] double by_rows(const std::uint16_t* column, std::size_t levels,
                                 std::size_t cells, Watch& watch);
    void fill_table(const std::uint16_t* column, std::size_t levels, std::size_t cells);

    const DiscreteData& data_;
    const CountValues& values_;
    DiscreteRoom& room_;
    Variable child_;
    Variables parents_;
    std::size_t child_levels_;
    double configurations_ = 1.0;  // product of the parents' levels, seen or not

    const Combinations* of_parents_ = nullptr;  // null: no parents, all rows
    const Combinations* with_child_ = nullptr;
    std::size_t numbered_ = 0;  // numbers of configurations there may be
};

}  // namespace isthmus

#pragma once

#include <cstdint>
#include <vector>

#include "counting/tables.hpp"

namespace isthmus {

/// What cells of a variable's last level are to hold when bitmaps have been counted.
enum class LastLevel {
    total,  // the rows of any level; `subtract_levels` makes them the last level's
    none,   // nothing; `complete_levels` fills them in
};

/// Adds the counts of the chosen sets to their tables, by intersections of bitmaps.
///
/// A cell is the number of rows that are in all its levels, so 64 rows cost one AND and one
/// population count. The last level of a variable has no bitmap.
template <class Code>
void add_by_bitmaps(const CodedColumns<Code>& data, const VariableSets& sets,
                    const std::vector<std::uint8_t>& chosen, LastLevel last, CountTables& tables,
                    Watch& watch);

/// Adds the counts of the chosen sets to their tables, by one increment per row.
template <class Code>
void add_by_histograms(const CodedColumns<Code>& data, const VariableSets& sets,
                       const std::vector<std::uint8_t>& chosen, CountTables& tables, Watch& watch);

}  // namespace isthmus

#pragma once

#include <cstdint>
#include <span>

#include "counting/tables.hpp"

namespace isthmus {

/// Cells of the largest table that is counted, and of all tables of one call together.
inline constexpr std::size_t most_cells = std::size_t{1} << 27;
inline constexpr std::size_t most_cells_together = std::size_t{1} << 29;

// What counting relies on. Each throws std::invalid_argument with a sentence for the user.

/// One cardinality of 1 to 65,536 for each variable, and one weight of at least 0 for each row with
/// a sum that fits 64 bits.
void check_cardinalities(std::span<const std::int64_t> cardinalities, std::size_t variables);
void check_weights(std::span<const std::int64_t> weights, std::size_t rows);

/// Codes of a variable are below its cardinality.
template <class Code>
void check_codes(const CodedColumns<Code>& data, Variable variable);

/// Variables exist and tables are of a size that can be counted.
template <class Code>
void check_sets(const CodedColumns<Code>& data, const VariableSets& sets);

/// The number of all sets of `size` of `variables` variables is one that can be counted.
void check_set_size(std::size_t variables, std::size_t size);

}  // namespace isthmus

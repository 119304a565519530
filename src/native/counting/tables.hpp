#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"
#include "core/zeroed_array.hpp"

namespace isthmus {

/// Coded data: a contiguous column of levels for each variable.
template <class Code>
struct CodedColumns {
    std::span<const Code> codes;
    std::size_t rows;
    std::span<const std::int64_t> weights;  // how often each row counts; empty: once
    std::span<const std::int64_t> cardinalities;

    [[nodiscard]] std::size_t variables() const { return cardinalities.size(); }
    [[nodiscard]] const Code* column(Variable variable) const {
        return codes.data() + static_cast<std::size_t>(variable) * rows;
    }
    [[nodiscard]] std::size_t levels(Variable variable) const {
        return static_cast<std::size_t>(cardinalities[static_cast<std::size_t>(variable)]);
    }
};

/// Sets of equally many variables; the row of a set holds its variables.
class VariableSets {
public:
    VariableSets(std::size_t size, std::vector<Variable> members);

    /// All sets of `size` of `variables` variables, in lexicographic order.
    [[nodiscard]] static VariableSets all(std::size_t variables, std::size_t size);

    [[nodiscard]] std::size_t count() const { return members_.size() / size_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Variables set(std::size_t index) const {
        return Variables{members_}.subspan(index * size_, size_);
    }
    [[nodiscard]] Variable last(std::size_t index) const { return set(index).back(); }
    /// Where each run of sets that differ in their last variable only starts, and the end.
    [[nodiscard]] std::vector<std::size_t> runs() const;

    [[nodiscard]] const std::vector<Variable>& members() const { return members_; }

private:
    std::size_t size_;
    std::vector<Variable> members_;
};

/// Tables of counts, one for each set, in one array; each in C order.
struct CountTables {
    std::vector<std::size_t> offsets;  // of each table, and the end
    ZeroedArray<std::int64_t> values;

    [[nodiscard]] std::span<std::int64_t> table(std::size_t index) {
        return values.span().subspan(offsets[index], offsets[index + 1] - offsets[index]);
    }
    [[nodiscard]] std::span<const std::int64_t> table(std::size_t index) const {
        return values.span().subspan(offsets[index], offsets[index + 1] - offsets[index]);
    }
};

/// How tables are counted; `fastest` chooses for each by measured costs.
enum class CountingMethod { fastest, bitmaps, histograms };

/// Counts the tables of some sets. Their sizes must have been checked to fit memory.
template <class Code>
[[nodiscard]] CountTables count_tables(const CodedColumns<Code>& data, const VariableSets& sets,
                                       CountingMethod method, Watch& watch);

/// Counts the tables of all sets of `size` variables, in lexicographic order. It is faster than
/// `count_tables`, because cells of last levels follow from smaller tables.
template <class Code>
[[nodiscard]] CountTables count_all_tables(const CodedColumns<Code>& data, std::size_t size,
                                           CountingMethod method, Watch& watch);

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/zeroed_array.hpp"
#include "counting/bitmaps.hpp"

namespace isthmus {

/// Coded rows, laid out for local scores: columns, and a bitmap for each level of variables that
/// have few.
class DiscreteData {
public:
    /// Variables with more levels have no bitmaps.
    static constexpr std::size_t most_levels = 32;

    /// A row of `codes` for each variable; `weights` is empty if every row counts once. Codes are
    /// below the cardinalities: bindings check.
    DiscreteData(Matrix<std::uint16_t> codes, std::size_t rows, std::vector<std::int64_t> weights,
                 std::vector<std::int64_t> cardinalities, bool with_bitmaps);

    [[nodiscard]] std::size_t variables() const { return cardinalities_.size(); }
    [[nodiscard]] std::size_t rows() const { return rows_; }
    [[nodiscard]] std::int64_t total() const { return total_; }
    [[nodiscard]] const std::vector<std::int64_t>& weights() const { return weights_; }
    [[nodiscard]] std::size_t levels(Variable variable) const {
        return static_cast<std::size_t>(cardinalities_[static_cast<std::size_t>(variable)]);
    }
    [[nodiscard]] const std::uint16_t* column(Variable variable) const {
        return codes_.row(static_cast<std::size_t>(variable)).data();
    }
    /// A column of a variable with a single level.
    [[nodiscard]] const std::uint16_t* constant_column() const { return constant_.data(); }

    /// Words of each bitmap.
    [[nodiscard]] std::size_t words() const { return words_; }
    [[nodiscard]] bool has_bitmaps(Variable variable) const {
        return first_[static_cast<std::size_t>(variable)] != none;
    }
    /// The bitmaps of all levels of a variable, one after the other.
    [[nodiscard]] const Word* bitmaps(Variable variable) const {
        return maps_.data() + first_[static_cast<std::size_t>(variable)] * words_;
    }
    /// Rows in each of these bitmaps.
    [[nodiscard]] std::span<const std::int64_t> totals(Variable variable) const {
        return std::span{totals_}.subspan(first_[static_cast<std::size_t>(variable)],
                                          levels(variable));
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    void make_bitmaps();

    Matrix<std::uint16_t> codes_;
    std::size_t rows_;
    std::vector<std::int64_t> weights_;
    std::vector<std::int64_t> cardinalities_;
    std::int64_t total_;
    std::vector<std::uint16_t> constant_;
    std::size_t words_;
    std::vector<std::size_t> first_;  // number of each variable's first bitmap
    std::vector<std::int64_t> totals_;
    ZeroedArray<Word> maps_;
};

}  // namespace isthmus

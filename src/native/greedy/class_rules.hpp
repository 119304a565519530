#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "greedy/bit_matrix.hpp"

namespace isthmus {

/// What the user demands of a graph, laid out for searches over equivalence classes.
class ClassRules {
public:
    /// `required` and `forbidden` are square, with a row for each edge's source and a column for
    /// its target. Edges from a node to itself do not matter.
    ClassRules(const Matrix<std::uint8_t>& required, const Matrix<std::uint8_t>& forbidden,
               std::size_t max_parents);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t max_parents() const { return max_parents_; }
    /// Whether anything is required or forbidden.
    [[nodiscard]] bool any() const { return any_; }

    [[nodiscard]] bool must(std::size_t from, std::size_t to) const { return must_.has(from, to); }
    [[nodiscard]] bool never(std::size_t from, std::size_t to) const {
        return never_.has(from, to);
    }
    /// The nodes that a node may be adjacent to.
    [[nodiscard]] const Word* open(std::size_t node) const { return open_.row(node); }
    /// The required edges.
    [[nodiscard]] const std::vector<std::pair<std::size_t, std::size_t>>& required() const {
        return required_;
    }

private:
    std::size_t size_;
    std::size_t max_parents_;
    bool any_ = false;
    BitMatrix must_;
    BitMatrix never_;
    BitMatrix open_;
    std::vector<std::pair<std::size_t, std::size_t>> required_;
};

}  // namespace isthmus

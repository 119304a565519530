#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Which variable reaches which along directed edges, as bits; edges are added one by one.
class PathMatrix {
public:
    explicit PathMatrix(std::size_t variables)
        : below_{variables, words(variables)}, above_{variables, words(variables)} {}

    [[nodiscard]] std::size_t variables() const { return below_.rows(); }
    [[nodiscard]] bool reaches(std::size_t from, std::size_t to) const {
        return (below_.row(from)[to / 64] >> (to % 64) & 1) != 0;
    }
    void add(std::size_t from, std::size_t to);
    /// Takes all edges of an acyclic graph at once, into an empty matrix; `order` follows the edges.
    void fill(const Matrix<std::uint8_t>& edges, const std::vector<std::size_t>& order);
    /// Number of variables that reach this one.
    [[nodiscard]] std::size_t ancestors(std::size_t variable) const;

private:
    [[nodiscard]] static std::size_t words(std::size_t variables) { return (variables + 63) / 64; }

    Matrix<std::uint64_t> below_;
    Matrix<std::uint64_t> above_;
    std::vector<std::uint64_t> sources_;
    std::vector<std::uint64_t> targets_;
};

/// All paths of a graph given by its edges. Looks for signals, but does not pause.
[[nodiscard]] PathMatrix paths_of(const Matrix<std::uint8_t>& edges, Watch& watch);

struct AcyclicEdges {
    std::vector<std::uint8_t> kept;  // which edges close no cycle with those before them
    std::vector<Variable> order;     // of the variables, along the required and the kept edges
};

/// Takes edges from the first to the last unless one closes a cycle with those before. Required
/// edges come first of all. Looks for signals, but does not pause.
[[nodiscard]] AcyclicEdges acyclic_edges(const Matrix<std::uint8_t>& required, Variables sources,
                                         Variables targets, Watch& watch);

}  // namespace isthmus

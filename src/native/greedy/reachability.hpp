#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace isthmus {

/// Which node of an acyclic graph reaches which along edges, as bits: a cycle test is a bit test.
class Reachability {
public:
    explicit Reachability(std::size_t size) : reach_{size, (size + 63) / 64}, pending_(size) {}

    [[nodiscard]] bool test(Variable source, Variable target) const {
        return (row(source)[word(target)] >> (target & 63) & 1) != 0;
    }

    /// Extends reachability by one new edge, which must not close a cycle.
    void add(Variable parent, Variable child);

    /// Computes reachability from the parents of each node. Returns false if there is a cycle.
    bool rebuild(const std::vector<std::vector<Variable>>& parents);

private:
    [[nodiscard]] std::span<const std::uint64_t> row(Variable node) const {
        return reach_.row(static_cast<std::size_t>(node));
    }
    [[nodiscard]] static std::size_t word(Variable node) {
        return static_cast<std::size_t>(node) / 64;
    }
    void join(Variable source, Variable child);

    Matrix<std::uint64_t> reach_;
    std::vector<std::size_t> pending_;
    std::vector<Variable> stack_;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/watch.hpp"
#include "exact/component_problem.hpp"

namespace isthmus {

/// An upper bound on the score of the nodes that are not placed (Yuan and Malone 2013).
///
/// The nodes are split into groups of consecutive numbers. For each subset of a group there is the
/// best score of these nodes when all nodes of other groups are free to be parents. The bound never
/// underestimates, and it is consistent.
class PatternDatabases {
public:
    PatternDatabases(const ComponentProblem& problem, std::span<const std::int64_t> sizes);

    /// Fills the tables; after a pause the same call goes on.
    void fill(Watch& watch);
    [[nodiscard]] bool filled() const { return group_ == groups_.size(); }

    /// The bound for the nodes outside `placed`.
    [[nodiscard]] double to_go(Word placed) const {
        double total = 0.0;
        const Word left = ~placed;
        for (const Group& group : groups_) {
            total += group.table[left >> group.shift & ((Word{1} << group.size) - 1)];
        }
        return total;
    }

private:
    struct Group {
        std::size_t shift;  // its first node
        std::size_t size;
        std::unique_ptr<double[]> table;
    };

    [[nodiscard]] double best_of(const Group& group, Word subset) const;

    const ComponentProblem& problem_;
    std::vector<Group> groups_;
    std::size_t group_ = 0;
    Word next_ = 0;
};

}  // namespace isthmus

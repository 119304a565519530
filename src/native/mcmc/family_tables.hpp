#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/exclusive.hpp"
#include "core/pool.hpp"
#include "mcmc/family_table.hpp"
#include "orders/rules.hpp"

namespace isthmus {

/// The weights of the parent sets of every node. Immutable once it is built, so that chains in
/// several threads share it.
class FamilyTables {
public:
    static constexpr std::size_t max_candidates = 20;
    static constexpr std::size_t max_families = std::size_t{1} << 28;

    /// `candidates` says for each parent and child whether the parent is a candidate; required
    /// parents always are. With `outside`, parent sets may have one member that is not a candidate.
    /// Nodes that have the same candidates in `previous`, which was built by the same score and
    /// rules, take over their tables.
    FamilyTables(std::shared_ptr<const LocalScore> score, const Rules& rules,
                 const Matrix<std::uint8_t>& candidates, bool outside,
                 const FamilyTables* previous = nullptr);

    /// Builds until the watch ends the slice; returns whether all nodes are done.
    bool step(Watch& watch, std::size_t jobs);

    [[nodiscard]] std::size_t size() const { return tables_.size(); }
    [[nodiscard]] std::size_t built() const;
    [[nodiscard]] bool done() const { return built() == size(); }
    [[nodiscard]] std::size_t families() const;
    [[nodiscard]] const FamilyTable& operator[](std::size_t node) const { return *tables_[node]; }
    /// The score of a graph whose nodes all have their best parent sets.
    [[nodiscard]] double best_score() const;
    [[nodiscard]] const LocalScore& local_score() const { return *score_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }
    [[nodiscard]] InUse& in_use() { return in_use_; }

private:
    std::shared_ptr<const LocalScore> score_;
    std::vector<std::shared_ptr<FamilyTable>> tables_;
    InUse in_use_;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/exclusive.hpp"
#include "orders/score_lines.hpp"

namespace isthmus {

/// Many walks through the order graph of a score table at once: each places one node after the other.
class TableWalks {
public:
    TableWalks(std::shared_ptr<const ScoreLines> table, std::size_t walks);

    /// Begins again with nothing placed.
    void restart();
    /// Places a node in each walk; the reward is the best score of its listed parents.
    void take(Variables actions, std::span<double> rewards, Watch& watch);
    /// Marks for each walk the nodes that are not placed and whose required parents are.
    void allowed(std::span<bool> out, Watch& watch);

    [[nodiscard]] std::size_t size() const { return table_->size(); }
    [[nodiscard]] std::size_t walks() const { return outside_.rows(); }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void find_demanding();

    std::shared_ptr<const ScoreLines> table_;
    Matrix<Word> outside_;
    std::optional<std::vector<Variable>> demanding_;  // nodes with required parents, once known
    InUse in_use_;
};

}  // namespace isthmus

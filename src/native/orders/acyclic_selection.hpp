#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orders/table_order.hpp"

namespace isthmus {

/// Gives nodes, the last in an order first, the best line that closes no cycle.
///
/// The relaxed rule of Scanagatta and others 2015: every predecessor is still allowed when a node
/// chooses, and some that come later. In an order of the graph so found no node scores less.
class AcyclicSelection {
public:
    /// The order must outlive this object and stay as it is until the end.
    explicit AcyclicSelection(const TableOrder& order);

    /// Goes on to the end; after a pause the same call goes on.
    void run(Watch& watch);
    /// An order of the graph; of the nodes that are free the one that stood first goes first.
    [[nodiscard]] Variables sorted() const { return sorted_; }
    /// Whether that is another order.
    [[nodiscard]] bool changed() const;

private:
    void choose(Variable v);
    void sort(Watch& watch);

    const TableOrder& order_;
    Matrix<Word> below_;  // a node and its descendants
    Matrix<Word> above_;  // a node and its ancestors
    std::vector<Word> fresh_;
    std::vector<ScoreLines::Line> chosen_;
    std::size_t left_;    // nodes that have not chosen
    std::vector<Word> unplaced_;
    std::vector<Variable> waiting_;
    std::vector<Variable> sorted_;
};

}  // namespace isthmus

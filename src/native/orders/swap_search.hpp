#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/exclusive.hpp"
#include "core/zeroed_array.hpp"
#include "orders/table_order.hpp"

namespace isthmus {

/// Swaps of neighbours in an order, the best one each time though it may lose.
class SwapSearch {
public:
    struct Options {
        std::size_t memory;    // for how many moves two nodes that changed places stay so
        std::size_t patience;  // after how many moves without a better order the search ends
        std::size_t most;      // moves
    };

    SwapSearch(std::shared_ptr<const ScoreLines> table, Variables order, Options options);

    /// Goes on until the watch ends the slice; returns whether the search has ended.
    bool step(Watch& watch);

    [[nodiscard]] bool ready() const { return known_ == gains_.size() && order_.settled(); }
    /// Score of the best order seen, which is `best`; of the first one if it is ready.
    [[nodiscard]] double score() const { return best_total_; }
    [[nodiscard]] Variables best() const { return best_; }
    [[nodiscard]] std::size_t moves() const { return moves_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void begin(Watch& watch);
    /// Makes one move; returns whether there is none left, or no patience.
    bool move();
    [[nodiscard]] std::pair<TableOrder::Line, TableOrder::Line> lines_after(std::size_t place);
    [[nodiscard]] double gain_of(std::size_t place);
    [[nodiscard]] std::uint64_t& kept_until(Variable a, Variable b);

    TableOrder order_;
    Options options_;
    std::vector<double> gains_;
    std::size_t known_ = 0;               // gains that are
    std::vector<Word> outside_;           // at the place that is looked at
    ZeroedArray<std::uint64_t> tabu_;     // by pair, the move up to which the first stays before
    std::vector<Variable> best_;
    double total_ = 0.0;
    double best_total_;
    std::size_t moves_ = 0;
    std::size_t idle_ = 0;  // moves since the best order
    bool begun_ = false;
    bool ended_ = false;
    InUse in_use_;
};

}  // namespace isthmus

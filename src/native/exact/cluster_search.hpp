#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/bit_set.hpp"
#include "core/exclusive.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Finds clusters that a fractional choice of parent sets violates.
///
/// In a graph without cycles some node of every set C of nodes has no parent in C. So for each C the
/// chosen parent sets of its nodes that avoid C sum to one at least (Jaakkola and others 2010). Sets
/// that break this are looked for by growing them from each of some pairs of nodes.
class ClusterSearch {
public:
    struct Choice {
        std::vector<std::int64_t> starts;  // the parent sets that are chosen in part, by node
        std::vector<Word> sets;
        std::vector<double> amounts;       // how much each is chosen
    };

    /// Looks for at most `most` clusters whose sum is below `limit`.
    ClusterSearch(Choice choice, std::vector<Variable> first, std::vector<Variable> second,
                  std::size_t most, double limit);

    /// Goes on until the watch ends the slice; returns whether all pairs were tried.
    bool step(Watch& watch);

    [[nodiscard]] bool done() const { return pair_ == first_.size() || sums_.size() == most_; }
    /// Clusters in the order in which they were found, some words each.
    [[nodiscard]] const std::vector<Word>& clusters() const { return clusters_; }
    [[nodiscard]] const std::vector<double>& sums() const { return sums_; }
    [[nodiscard]] std::size_t words() const { return words_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    static constexpr Variable nobody = -1;

    void start_pair();
    void take_in(Variable added);
    [[nodiscard]] Variable choose_next();
    void keep();
    [[nodiscard]] std::span<const Word> set(std::size_t line) const {
        return {choice_.sets.data() + line * words_, words_};
    }
    [[nodiscard]] std::size_t begin(Variable v) const;
    [[nodiscard]] std::size_t end(Variable v) const { return begin(v + 1); }

    Choice choice_;
    std::vector<Variable> first_;
    std::vector<Variable> second_;
    std::size_t most_;
    double limit_;
    std::size_t size_;
    std::size_t words_;
    std::vector<Word> clusters_;
    std::vector<double> sums_;

    // The cluster that grows from the pair under way.
    std::size_t pair_ = 0;
    Variable next_ = nobody;  // joins next
    std::vector<Word> inside_;
    std::vector<Variable> members_;
    std::vector<std::uint8_t> alive_;  // lines of a member that avoid the cluster
    std::vector<double> change_;
    double total_ = 0.0;
    double best_ = 0.0;
    std::vector<Word> best_inside_;
    InUse in_use_;
};

}  // namespace isthmus

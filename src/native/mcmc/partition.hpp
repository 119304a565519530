#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/bit_set.hpp"
#include "mcmc/family_tables.hpp"

namespace isthmus {

/// An ordered partition of the nodes, with the weight of the graphs that have it.
///
/// Nodes of the first element have no parents. A node of another element has all its parents in
/// elements before, one at least in the element just before. So every graph has one partition.
class Partition {
public:
    using Labels = std::vector<std::uint32_t>;

    explicit Partition(std::size_t nodes);

    /// Takes over a partition and computes all weights. Labels are 0 to some number, all used.
    void set(const Labels& labels, const FamilyTables& tables);
    /// The same, where nodes whose possible parents are those in `other` keep their weights.
    void set(const Labels& labels, const FamilyTables& tables, const Partition& other);

    [[nodiscard]] const Labels& labels() const { return labels_; }
    [[nodiscard]] std::size_t nodes() const { return labels_.size(); }
    [[nodiscard]] std::size_t elements() const { return count_; }
    [[nodiscard]] std::size_t size(std::size_t element) const { return sizes_[element]; }
    [[nodiscard]] std::span<const Word> element(std::size_t e) const { return members_.row(e); }
    /// All nodes in elements before this one.
    [[nodiscard]] std::span<const Word> before(std::size_t e) const { return before_.row(e); }
    [[nodiscard]] double log_weight() const { return total_; }

    /// The nodes from which a node has its parents, and those of which one must be among them.
    [[nodiscard]] std::span<const Word> allowed(std::size_t node) const {
        return before(labels_[node]);
    }
    [[nodiscard]] std::span<const Word> wanted(std::size_t node) const {
        const std::uint32_t label = labels_[node];
        return label == 0 ? std::span<const Word>{} : element(label - 1);
    }

private:
    void index(const Labels& labels);
    [[nodiscard]] double weigh(std::size_t node, const FamilyTables& tables) const;

    Labels labels_;
    std::size_t count_ = 0;
    std::vector<std::size_t> sizes_;
    Matrix<Word> members_;
    Matrix<Word> before_;
    std::vector<double> weights_;
    double total_ = 0.0;
};

/// The partition of a graph.
[[nodiscard]] Partition::Labels partition_of(const Matrix<Word>& parents);

}  // namespace isthmus

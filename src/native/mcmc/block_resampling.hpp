#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mcmc/chance.hpp"
#include "mcmc/family_tables.hpp"

namespace isthmus {

/// Draws new parents of several nodes at once from their exact distribution given the parents of
/// all other nodes (a Gibbs step over a block of families).
///
/// Nodes of the block are arranged in layers, as in a partition of a graph: a parent set needs
/// those nodes of the block that are in it or are ancestors of its members, and a node stands one
/// layer behind the last node that its parents need. Sums over all arrangements are computed by
/// dynamic programming over pairs of a set of nodes and its last layer.
class BlockResampling {
public:
    static constexpr std::size_t largest = 6;

    explicit BlockResampling(const FamilyTables& tables);

    /// Resamples the parents of `size` nodes that tend to be neighbours; which ones does not depend
    /// on the graph.
    void resample(Matrix<Word>& parents, std::size_t size, Chance& chance);

private:
    using Subset = std::uint32_t;  // of the block

    void choose_nodes(std::size_t size, Chance& chance);
    /// Finds the nodes that may be parents if some nodes of the block are placed, for each subset.
    void find_allowed(const Matrix<Word>& parents);
    /// Looks up the weights of the parents of each node, for each subset before it.
    void weigh();
    /// Sums over all arrangements of each subset by its last layer.
    void add_up();
    /// Adds what follows the arrangements of a subset that end with a layer.
    void extend(Subset placed, Subset last, double weight);
    void draw(Matrix<Word>& parents, Chance& chance);
    /// Share of the weight of a node's parent sets that need a member of the last layer.
    [[nodiscard]] double share(std::size_t node, Subset placed, Subset last) const;
    [[nodiscard]] std::size_t at(std::size_t row, Subset column) const {
        return row * subsets_ + column;
    }

    const FamilyTables& tables_;
    Matrix<double> affinity_;
    std::vector<double> near_;
    std::vector<std::size_t> nodes_;
    std::size_t subsets_ = 0;
    Matrix<Word> children_;
    Matrix<Word> descendants_;
    Matrix<Word> allowed_;       // by subset
    std::vector<double> logs_;   // by node and subset
    std::vector<double> values_;  // the weights themselves, relative to the largest of the node
    std::vector<double> inverses_;
    std::vector<double> best_;   // logarithm of the weight of the best order of each subset
    std::vector<double> sums_;   // by subset and last layer, relative to the best order
    std::vector<Subset> layers_;  // subsets of the nodes that are not placed
    std::vector<double> products_;
    std::vector<double> reached_;
    std::vector<double> exponents_;
    std::vector<double> options_;
    std::vector<Subset> option_layers_;
    std::vector<Word> wanted_;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "mcmc/chance.hpp"
#include "mcmc/family_tables.hpp"

namespace isthmus {

/// Reverses an edge of a graph and draws new parents of both its nodes (Grzegorczyk and Husmeier
/// 2008).
class EdgeReversal {
public:
    explicit EdgeReversal(const FamilyTables& tables);

    void start(const Matrix<Word>& parents);
    /// Proposes a reversal; returns whether there is one.
    bool propose(Chance& chance);
    /// The logarithm of the ratio by which the proposal is to be accepted.
    [[nodiscard]] double log_ratio() const { return log_ratio_; }
    [[nodiscard]] const Matrix<Word>& proposal() const { return proposal_; }
    void commit();
    [[nodiscard]] const Matrix<Word>& parents() const { return parents_; }
    [[nodiscard]] bool changed() const { return changed_; }

private:
    /// Removes the parents of two nodes from the children of all nodes.
    void orphan(std::size_t i, std::size_t j);
    /// Finds the nodes that may be parents of `node` without a cycle: those that are not its
    /// descendants in the orphaned graph, in which `other` has some parents again.
    void find_allowed(std::size_t node, std::size_t other, std::span<const Word> parents);

    const FamilyTables& tables_;
    Matrix<Word> parents_;
    Matrix<Word> proposal_;
    Matrix<Word> children_;  // in the orphaned graph
    std::vector<std::pair<std::size_t, std::size_t>> edges_;
    std::vector<Word> allowed_;
    std::vector<Word> single_;
    std::vector<Word> everything_;
    std::vector<Word> waiting_;
    std::vector<Word> none_;
    double log_ratio_ = 0.0;
    bool changed_ = false;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "mcmc/chance.hpp"
#include "mcmc/partition.hpp"

namespace isthmus {

/// Moves a node to a place drawn from all its places in a partition, given the other nodes (Gibbs).
class Relocation {
public:
    explicit Relocation(const FamilyTables& tables);

    /// Writes the labels after the move to `labels`.
    void propose(const Partition& partition, std::size_t node, double heat, Chance& chance,
                 Partition::Labels& labels);

private:
    /// Sums over the nodes of an element, by where the moved node is.
    struct ElementWeights {
        double absent;  // not before this element
        double joined;  // in the element just before
        double alone;   // on its own, just before
        double deep;    // further before
    };

    void remove(const Partition& partition, std::size_t node);
    [[nodiscard]] ElementWeights weigh(std::size_t element, std::size_t node);
    void weigh_places(std::size_t node);

    const FamilyTables& tables_;
    // The partition of the other nodes.
    Partition::Labels rest_;
    std::size_t count_ = 0;
    Matrix<Word> members_;
    Matrix<Word> before_;
    std::vector<std::vector<std::size_t>> nodes_;
    std::vector<Word> with_;     // all before an element, and the moved node
    std::vector<Word> without_;  // the same without the element just before
    std::vector<Word> adjacent_;
    std::vector<Word> alone_;
    std::vector<ElementWeights> weights_;
    std::vector<double> places_;  // joining element 0, 1, ...; then alone before element 0, 1, ...
};

}  // namespace isthmus

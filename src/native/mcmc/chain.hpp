#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bit_set.hpp"
#include "mcmc/chance.hpp"
#include "mcmc/family_tables.hpp"

namespace isthmus {

/// A graph by the parents of its nodes, one row of words each, and its score.
struct Graph {
    Matrix<Word> parents;
    double score;  // relative to the best parent sets of all nodes
};

/// What a state says about the parents of each node, one row of words each: the nodes from which
/// they are, and those of which one must be among them, unless there are none.
struct ParentDemands {
    explicit ParentDemands(std::size_t nodes)
        : allowed{nodes, words_for(nodes)}, wanted{nodes, words_for(nodes)} {}

    Matrix<Word> allowed;
    Matrix<Word> wanted;
};

/// One Markov chain over groups of graphs: orders or ordered partitions of the nodes.
///
/// Its target is the weight of the group to the power of `heat`: 1 for the posterior, less for the
/// chains that help it out of local modes.
class Chain {
public:
    /// A state: the place of each node, counted from 0. Nodes of one element share a place.
    using Labels = std::vector<std::uint32_t>;

    Chain() = default;
    virtual ~Chain() = default;
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;

    /// Number of kinds of moves.
    [[nodiscard]] virtual std::size_t moves() const = 0;
    /// Makes one move of a kind; each kind alone leaves the target as it is.
    virtual void move(std::size_t kind, Chance& chance) = 0;
    /// Makes one round of moves of all kinds.
    virtual void round(Chance& chance) = 0;
    /// Draws a graph from the current group.
    virtual void draw(Graph& graph, Chance& chance) const = 0;
    /// Writes what the current state demands.
    virtual void demands(ParentDemands& demands) const = 0;

    [[nodiscard]] virtual double log_weight() const = 0;
    [[nodiscard]] virtual const Labels& labels() const = 0;
    /// Goes to another state; it must have a positive weight.
    virtual void set_labels(const Labels& labels) = 0;
    virtual void set_heat(double heat) = 0;
};

}  // namespace isthmus

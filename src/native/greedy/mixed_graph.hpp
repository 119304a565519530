#pragma once

#include <cstddef>
#include <vector>

#include "greedy/bit_matrix.hpp"

namespace isthmus {

/// A graph with directed and undirected edges, such as the essential graph of a class.
struct MixedGraph {
    explicit MixedGraph(std::size_t nodes)
        : parents{nodes, nodes},
          children{nodes, nodes},
          neighbours{nodes, nodes},
          adjacent{nodes, nodes} {}

    [[nodiscard]] std::size_t words() const { return parents.words(); }

    /// Makes the edge between two nodes `from -> to`, whatever it was.
    void orient(std::size_t from, std::size_t to) {
        neighbours.drop(from, to);
        neighbours.drop(to, from);
        parents.drop(from, to);
        children.drop(to, from);
        parents.put(to, from);
        children.put(from, to);
    }

    BitMatrix parents;
    BitMatrix children;
    BitMatrix neighbours;  // by undirected edges, both ways
    BitMatrix adjacent;    // all of these
};

/// Looks for paths in a mixed graph.
class PathSearch {
public:
    explicit PathSearch(std::size_t nodes) : stack_(nodes) {}

    /// Fills `found` with all that semi-directed paths from `frontier` get to.
    ///
    /// `onward` are the graph's children or, to go backwards, its parents. Paths enter neither
    /// `barred` nor the node `start`. `frontier` is used up.
    void reach(const MixedGraph& graph, const BitMatrix& onward, std::size_t start, Word* frontier,
               const Word* barred, Word* found);

    /// Whether undirected paths inside `within` join two sets; `frontier` is used up.
    [[nodiscard]] bool connects(const MixedGraph& graph, const Word* within, Word* frontier,
                                const Word* target);

    static constexpr std::size_t no_node = static_cast<std::size_t>(-1);

private:
    std::vector<std::size_t> stack_;
};

/// The cliques among some nodes, smaller ones first, beginning with the empty one.
class CliqueList {
public:
    /// Cliques listed at most: keeps very dense graphs within bounds.
    static constexpr std::size_t most = 512;

    explicit CliqueList(std::size_t nodes) : cliques_{most, nodes}, joining_{most, nodes} {}

    void list(const MixedGraph& graph, const Word* within);

    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] const Word* clique(std::size_t index) const { return cliques_.row(index); }

private:
    BitMatrix cliques_;
    BitMatrix joining_;  // what may join each clique
    std::size_t count_ = 0;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "greedy/class_rules.hpp"
#include "greedy/mixed_graph.hpp"

namespace isthmus {

/// Completes mixed graphs to essential graphs.
class EssentialGraphs {
public:
    explicit EssentialGraphs(const ClassRules& rules);

    enum class Outcome {
        made,
        refused,  // no member of the class obeys the rules
        broken,   // the graph has no consistent extension
    };

    /// Makes the essential graph of the class that a mixed graph describes.
    ///
    /// A consistent extension is found and labelled. With rules the same is done once more after
    /// orienting what they demand: the result obeys, and is in the class if its labels are the same.
    [[nodiscard]] Outcome make(const MixedGraph& graph);

    /// The graph made last.
    [[nodiscard]] const MixedGraph& graph() const { return fresh_; }
    /// The parents in a member of its class that obeys the rules.
    [[nodiscard]] const BitMatrix& member() const { return dag_; }

    /// Finds a member of the class of an essential graph that obeys the rules; `member` returns it.
    [[nodiscard]] bool find_member(const MixedGraph& essential);

private:
    /// Orients all undirected edges without a cycle or a new v-structure; false: impossible.
    [[nodiscard]] bool extend(const MixedGraph& graph);
    [[nodiscard]] bool is_sink(std::size_t node) const;
    /// Finds the edges that all graphs equivalent to the extension share.
    void label();
    void write_essential();
    /// Copies an essential graph and orients what the rules demand; false: it contradicts what is
    /// compelled.
    [[nodiscard]] bool lay_down(const MixedGraph& essential);

    enum class State : std::uint8_t { seen, waiting, removed };

    const ClassRules& rules_;
    std::size_t size_;
    MixedGraph left_;   // what is left of a graph while sinks are taken away
    MixedGraph work_;   // with what the rules demand
    MixedGraph fresh_;
    BitMatrix dag_;
    BitMatrix compelled_;
    std::vector<std::size_t> order_;
    std::vector<std::size_t> place_;
    std::vector<std::size_t> stack_;
    std::vector<State> state_;
};

}  // namespace isthmus

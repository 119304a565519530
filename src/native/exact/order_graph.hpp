#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/exclusive.hpp"
#include "core/growing_vector.hpp"
#include "core/hash_index.hpp"
#include "core/max_heap.hpp"
#include "exact/component_problem.hpp"
#include "exact/pattern_databases.hpp"

namespace isthmus {

/// A* on the order graph of at most 64 nodes.
///
/// A state is the set of nodes placed so far; the step to a state with x more is worth the best
/// score of x with parents among those placed. The bound is consistent, so a state is expanded once.
class OrderGraph {
public:
    struct Options {
        double known;                 // score of a graph that is known
        std::optional<double> slack;  // search all states of graphs that score at most this much
                                      // less than the best; without it, one best graph
        std::size_t max_states;       // give up here
    };

    OrderGraph(ComponentProblem problem, std::span<const std::int64_t> groups, Options options);

    /// Fills the patterns, then expands states, until the watch ends the slice; returns whether it
    /// is done.
    bool step(Watch& watch);

    [[nodiscard]] bool done() const { return done_; }
    [[nodiscard]] bool gave_up() const { return gave_up_; }
    [[nodiscard]] bool searching() const { return patterns_.filled(); }
    [[nodiscard]] std::size_t expanded() const { return expanded_; }
    [[nodiscard]] std::size_t states() const { return states_.size(); }
    /// Score of the best graph known.
    [[nodiscard]] double known() const { return options_.known; }
    /// What the best graph can score at most.
    [[nodiscard]] double bound() const;
    /// The line of each node in the graph that was found; nothing if none is better than the known.
    [[nodiscard]] std::vector<std::int64_t> lines() const;
    /// The states that were expanded, and the best score of the nodes in them.
    [[nodiscard]] std::pair<std::vector<Word>, std::vector<double>> closed(Watch& watch) const;

    /// The best score of these nodes, if the state was expanded.
    [[nodiscard]] std::optional<double> value(Word placed) const;

    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    static constexpr std::uint32_t no_state = HashIndex::none;

    struct State {
        Word placed;
        double value;       // best score of the nodes placed
        std::uint32_t via;  // the state before
        std::int8_t last;   // the node placed last by choice
        bool closed;
    };

    /// A state that follows the one that is being expanded.
    struct Successor {
        Word placed;
        double value;
        double key;  // what a graph through it scores at most
        std::int8_t last;
    };

    void begin();
    void search(Watch& watch);
    [[nodiscard]] bool has_room();
    /// Expands the best state; returns whether the search is over.
    [[nodiscard]] bool expand();
    void see(const Successor& next, std::uint32_t via);
    void close_up(Word& placed, double& value) const;
    [[nodiscard]] bool closing() const { return !options_.slack; }
    void set_floor();

    ComponentProblem problem_;
    PatternDatabases patterns_;
    Options options_;
    double floor_ = 0.0;  // states that cannot reach more are left out
    GrowingVector<State> states_;
    HashIndex index_;
    MaxHeap<std::uint32_t> heap_;
    std::vector<Successor> successors_;
    std::size_t room_ = std::size_t{1} << 14;
    std::size_t expanded_ = 0;
    std::uint32_t goal_ = no_state;
    bool begun_ = false;
    bool done_ = false;
    bool gave_up_ = false;
    InUse in_use_;
};

}  // namespace isthmus

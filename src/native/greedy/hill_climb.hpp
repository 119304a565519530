#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/exclusive.hpp"
#include "core/random.hpp"
#include "greedy/edge_gains.hpp"

namespace isthmus {

/// Hill climbing over single edges with a tabu list, one time slice at a time.
///
/// Equivalent graphs score the same, but their neighbours differ, so a climb that always breaks
/// ties in one way ends early. With a seed, ties are drawn, covered edges are turned round at
/// random between changes, which keeps the equivalence class (Castelo and Kočka, "On
/// inclusion-driven learning of Bayesian networks", JMLR 2003), and when a climb ends, another one
/// starts from the best graph with some edges removed.
class HillClimb {
public:
    struct Options {
        std::size_t tabu;      // number of recent graphs that may not be visited again
        std::size_t patience;  // number of changes without a new best graph that ends a climb
        std::size_t restarts;  // number of consecutive climbs without a better graph that ends the search
        std::optional<std::uint64_t> seed;  // without one, there is one climb and nothing is drawn
    };

    struct Best {
        std::vector<std::vector<Variable>> parents;  // of each variable, ascending
        double score;
    };

    HillClimb(std::shared_ptr<const LocalScore> score, Rules rules, const Options& options);

    /// Begins anew, from this graph and without removing or reversing one edge of it. The graph must
    /// be acyclic, obey the rules, have the edge and list parents in ascending order. With
    /// `nearby`, restarts remove edges between neighbours of that edge only. Gains computed before
    /// are used again.
    void start(const std::vector<std::vector<Variable>>& parents, Variable parent, Variable child,
               std::size_t restarts, bool nearby);

    /// Searches until the end or until the watch ends the slice; returns whether it is the end.
    bool step(Watch& watch);

    /// The best graph so far.
    [[nodiscard]] Best best(Watch& watch) const;

    [[nodiscard]] std::size_t changes() const { return changes_; }
    [[nodiscard]] std::size_t climbs() const { return climbs_; }
    /// How many variables have their first scores.
    [[nodiscard]] std::size_t scored() const { return scored_; }
    [[nodiscard]] double score() const { return best_score_; }
    [[nodiscard]] const LocalScore& local_score() const { return *score_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    /// What the rows of gains that are being refreshed belong to.
    enum class Stage { start, change, turn, restart, finished };

    void advance();
    bool judge();
    void choose_change();
    bool turn_edges();
    void end_climb();
    void restart();
    void change_graph(const EdgeChange& change);
    void mark_stale(const EdgeChange& change);
    [[nodiscard]] std::vector<std::pair<Variable, Variable>> edges() const;
    void keep_best();

    std::shared_ptr<const LocalScore> score_;
    Rules rules_;
    Options options_;
    EdgeGains gains_;
    SplitMix random_;
    Stage stage_ = Stage::start;

    std::vector<Variable> stale_;        // children to be refreshed, the last one first
    std::vector<std::uint8_t> is_stale_;
    std::size_t remembered_;             // how many graphs are remembered at most
    std::vector<std::uint64_t> recent_;  // keys of the graphs visited last, a ring
    std::size_t visited_ = 0;            // in this climb
    std::size_t scored_ = 0;
    std::size_t changes_ = 0;
    std::size_t climbs_ = 1;
    std::size_t idle_ = 0;         // changes since the best graph of this climb
    std::size_t idle_climbs_ = 0;  // climbs since the best graph of all
    double current_score_ = -std::numeric_limits<double>::infinity();
    double climb_score_ = -std::numeric_limits<double>::infinity();  // the best of this climb
    double best_score_ = -std::numeric_limits<double>::infinity();
    std::vector<EdgeChange> since_best_;
    std::vector<std::uint8_t> is_near_;  // where restarts remove edges; empty for everywhere
    InUse in_use_;
};

}  // namespace isthmus

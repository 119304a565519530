#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/arena.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"
#include "greedy/reachability.hpp"
#include "orders/rules.hpp"
#include "scoring/local_score.hpp"

namespace isthmus {

/// A change of one edge of a graph.
struct EdgeChange {
    enum class Kind { add, remove, reverse };
    Kind kind;
    Variable child;
    Variable parent;
    double gain;
};

/// A directed acyclic graph with the gain of every change of a single edge.
///
/// A change of a child's parents leaves the gains of other children as they are, so each row of
/// gains is computed once per change of that child. The score and the rules must outlive it.
class EdgeGains {
public:
    /// Starts with the required edges; no gain is known yet.
    EdgeGains(const LocalScore& score, const Rules& rules);

    [[nodiscard]] std::size_t size() const { return parents_.size(); }
    [[nodiscard]] const std::vector<std::vector<Variable>>& parents() const { return parents_; }
    /// A number that tells the current graph from others.
    [[nodiscard]] std::uint64_t key() const { return key_; }
    /// The score of each child with its parents, as of its last `refresh`.
    [[nodiscard]] std::span<const double> local_scores() const { return local_; }

    /// Computes the gains of changing the parents of `child`.
    void refresh(Variable child, Watch& watch);

    /// Changes the graph, which must stay acyclic. The caller then refreshes the children whose
    /// parents changed.
    void apply(const EdgeChange& change);
    /// Takes a change back.
    void undo(const EdgeChange& change);

    /// Whether the edge can be turned round without a change of the equivalence class, and may be.
    [[nodiscard]] bool can_turn(Variable parent, Variable child) const;
    /// What that gains; nothing, if equivalent graphs score the same.
    [[nodiscard]] double turn_gain(Variable parent, Variable child) const {
        return gain_.row(static_cast<std::size_t>(child))[static_cast<std::size_t>(parent)] +
               gain_.row(static_cast<std::size_t>(parent))[static_cast<std::size_t>(child)];
    }

    /// How to choose among changes.
    struct Choice {
        double floor;                        // what a change must gain more than
        std::optional<std::uint64_t> ties;   // draws among equal gains; else the first one is taken
        std::span<const std::uint64_t> recent;  // keys of graphs that must not come again
    };
    /// Finds the best change that closes no cycle. All gains must be known.
    [[nodiscard]] std::optional<EdgeChange> best_change(const Choice& choice);

private:
    class Best;

    [[nodiscard]] std::uint64_t edge_number(Variable child, Variable parent) const {
        return static_cast<std::uint64_t>(child) * size() + static_cast<std::uint64_t>(parent);
    }
    [[nodiscard]] bool has_edge(Variable parent, Variable child) const {
        return edge_.row(static_cast<std::size_t>(child))[static_cast<std::size_t>(parent)] != 0;
    }
    [[nodiscard]] bool is_open(Variable parent, Variable child) const {
        return rules_.forbidden(child)[static_cast<std::size_t>(parent)] == 0;
    }
    /// The gains of one child with certain parents.
    struct Row {
        std::vector<Variable> parents;
        std::span<double> gain;
        double local;
        double best_addition;
    };

    [[nodiscard]] const Row* find_row(std::uint64_t key, Variables parents) const;
    [[nodiscard]] Row compute_row(Variable child, Watch& watch);
    [[nodiscard]] bool reaches_otherwise(Variable parent, Variable child) const;
    void set_edge(Variable parent, Variable child, bool present);
    void consider_additions(Best& best) const;
    void consider_edges(Best& best) const;

    const LocalScore& score_;
    const Rules& rules_;
    std::vector<std::vector<Variable>> parents_;   // ascending
    std::vector<std::vector<Variable>> children_;  // ascending
    Matrix<std::uint8_t> edge_;                    // [child, parent]
    Matrix<double> gain_;                          // [child, parent]: of adding, or of removing
    std::vector<double> best_addition_;            // per child, cycles not considered
    std::vector<double> local_;
    Reachability reach_;
    bool reach_is_stale_ = false;
    std::uint64_t key_ = 0;

    // Rows computed before: tabu steps and turns often come back to the same parents.
    std::unordered_map<std::uint64_t, Row> rows_;
    Arena<double> row_values_;

    std::vector<Variable> candidates_;
    std::vector<double> values_;
    std::vector<double> removed_;
};

}  // namespace isthmus

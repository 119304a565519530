#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "core/watch.hpp"
#include "greedy/class_rules.hpp"
#include "greedy/class_state.hpp"
#include "greedy/mixed_graph.hpp"
#include "greedy/score_rows.hpp"

namespace isthmus {

/// A deletion that could be tried at an optimum.
struct Trial {
    std::size_t x;
    std::size_t y;
    double gain;
    std::vector<Word> chosen;
};

/// Finds the best operators on an equivalence class. With P the parents and N the neighbours of the
/// target y:
///
/// - Delete(x, y, C): C a clique in N whose nodes are adjacent to x; always valid.
/// - Insert(x, y, S): x not adjacent to y; S a clique in N that holds all of N adjacent to x; every
///   semi-directed path from y to x goes through S (Chickering, JMLR 2002).
/// - Turn(x, y, S) makes x -> y of y -> x or x - y (Hauser and Bühlmann, JMLR 2012).
///
/// Insertions and turns both add x to a parent set P + S of y, so one row of scores holds all of
/// them. A turn also takes y from the parents of x. Where no deletion gains, that part of a turn
/// does not either, so only the gaining entries of rows matter.
class ClassOperators {
public:
    ClassOperators(const ClassRules& rules, ScoreRows& rows);

    void set_tolerance(double tolerance) { tolerance_ = tolerance; }

    /// Finds the best deletion with target y; adds all of them to `trials` unless it is null.
    void renew_deletions(ClassState& state, std::size_t y, std::vector<Trial>* trials,
                         Watch& watch);
    /// Finds the best turn and the best insertion with target y. After a pause, it goes on with the
    /// clique where it was.
    void renew_moves(ClassState& state, std::size_t y, Watch& watch);
    /// The stamp of the class in which the moves of a target were found.
    [[nodiscard]] std::size_t age(std::size_t y) const { return age_[y]; }

    /// Writes a graph all of whose consistent extensions are in the class after the operator kept
    /// for y: the graph before, oriented as in a member where it changes this one edge.
    static void write_change(const ClassState& state, OperatorKind kind, std::size_t y,
                             MixedGraph& out);

    /// Rules out the operator kept for y in this class.
    void refuse(const ClassState& state, OperatorKind kind, std::size_t y);

private:
    [[nodiscard]] std::uint64_t refusal(const ClassState& state, OperatorKind kind, std::size_t x,
                                        std::size_t y, const Word* chosen) const;
    [[nodiscard]] bool is_refused(const ClassState& state, OperatorKind kind, std::size_t x,
                                  std::size_t y, const Word* chosen) const;
    [[nodiscard]] double deletion_gain(const ClassState& state, std::size_t x, std::size_t y,
                                       const Word* chosen, Watch& watch);
    [[nodiscard]] bool lacks(const ClassState& state, std::size_t x, std::size_t y,
                             const Word* chosen) const;
    [[nodiscard]] bool defies(const ClassState& state, std::size_t x, std::size_t y,
                              const Word* chosen) const;
    [[nodiscard]] bool may_turn(const ClassState& state, std::size_t x, std::size_t y,
                                const Word* chosen);
    [[nodiscard]] double turn_rest(const ClassState& state, std::size_t x, std::size_t y,
                                   const Word* chosen, Watch& watch);
    void look_at_clique(ClassState& state, std::size_t y, const Word* chosen, Watch& watch);
    void keep(ClassState& state, OperatorKind kind, std::size_t y, double gain, std::size_t x,
              const Word* chosen) const;

    /// The moves of one target that are being found.
    struct Renewal {
        std::size_t target = PathSearch::no_node;
        std::size_t stamp = 0;
        std::size_t next = 0;  // clique to look at
        bool blocked = false;
    };

    const ClassRules& rules_;
    ScoreRows& rows_;
    double tolerance_ = 0.0;
    std::size_t words_;
    PathSearch paths_;
    CliqueList deletion_cliques_;
    CliqueList move_cliques_;
    Renewal renewal_;
    std::size_t renewals_ = 0;
    std::vector<std::size_t> age_;
    // What a turn of each node also brings, and in which renewal that was found.
    std::vector<double> rest_;
    std::vector<std::size_t> rest_found_;
    std::unordered_set<std::uint64_t> refused_;
    // Sets that functions work with; no two that call each other use the same.
    std::vector<Word> base_;
    std::vector<Word> near_;
    std::vector<Word> common_;
    std::vector<Word> frontier_;
    std::vector<Word> found_;
    std::vector<Word> other_;
    std::vector<Word> within_;
    std::vector<Word> reached_;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/exclusive.hpp"
#include "core/watch.hpp"
#include "greedy/class_operators.hpp"
#include "greedy/class_rules.hpp"
#include "greedy/class_state.hpp"
#include "greedy/essential_graph.hpp"
#include "greedy/score_rows.hpp"
#include "scoring/local_score.hpp"

namespace isthmus {

/// Extremely greedy equivalence search (Nazaret and Blei, UAI 2024), one time slice at a time.
///
/// Deletions are preferred to turns, and turns to insertions. For every node as the target the best
/// operator of each kind is kept, and found again only when something near the node changed. At an
/// optimum the extended search forces one deletion after the other, searches on without that edge,
/// and stays where that ends better.
class XgesRun {
public:
    struct Best {
        std::vector<std::vector<Variable>> parents;  // of each variable, ascending
        double score;
    };

    XgesRun(std::shared_ptr<const LocalScore> score, ClassRules rules, bool extended);

    /// Works until the end or until the watch ends the slice; returns whether it is the end.
    bool step(Watch& watch);

    [[nodiscard]] bool finished() const { return stage_ == Stage::finished; }
    /// A member of the best class so far that obeys the rules.
    [[nodiscard]] Best best(Watch& watch);

    /// Operators made on the way to the current class.
    [[nodiscard]] std::size_t changes() const { return state_.steps; }
    /// Deletions that are still to be tried at the current optimum.
    [[nodiscard]] std::size_t trials_left() const { return waiting_.size(); }
    /// The best total so far.
    [[nodiscard]] double score() const;
    [[nodiscard]] std::size_t evaluations() const { return rows_.evaluations(); }
    /// Whether gains turned out not to add up, as with a score that gives equivalent graphs
    /// different values. Then the search starts over, and a change must raise the score of a member.
    [[nodiscard]] bool guarded() const { return guarded_; }
    [[nodiscard]] std::size_t nodes() const { return rules_.size(); }
    [[nodiscard]] const LocalScore& local_score() const { return *score_; }

    /// Two threads must not use one run at the same time; bindings claim it.
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    enum class Stage { scoring, climbing, listing, planning, trying, finished };
    enum class Change { made, refused };
    enum class End { optimum, refused, restarted };

    void advance(Watch& watch);
    void start(Watch& watch);
    /// Makes operators until none gains, or the forced deletion turns out to be impossible.
    [[nodiscard]] End climb(Watch& watch);
    void renew(Watch& watch);
    [[nodiscard]] Change apply(OperatorKind kind, std::size_t y, Watch& watch);
    void take_over(OperatorKind kind, std::size_t x, std::size_t y);
    void mark_near(OperatorKind kind, std::size_t x, std::size_t y, std::size_t v, bool changed);

    void list_trials(Watch& watch);
    void begin_trial();
    void end_trial();

    /// Whether gains add up to the score of a member.
    [[nodiscard]] bool gains_add_up(Watch& watch);
    void start_over(Watch& watch);
    /// The score of a member of a class; `find_member` always finds the same one.
    [[nodiscard]] double member_total(const MixedGraph& graph, Watch& watch);
    /// The parents of a variable in the member found last, and their score.
    [[nodiscard]] std::pair<std::vector<Variable>, double> family_score(std::size_t v,
                                                                        Watch& watch);
    void set_tolerance(double total);

    std::shared_ptr<const LocalScore> score_;
    ClassRules rules_;
    bool extended_;
    ScoreRows rows_;
    ClassOperators operators_;
    EssentialGraphs essential_;
    MixedGraph change_;
    PathSearch paths_;
    MixedGraph first_;  // the class of the required edges
    ClassState state_;
    ClassState saved_;
    double tolerance_ = 0.0;
    Stage stage_ = Stage::scoring;
    std::size_t classes_ = 0;
    std::vector<Trial> trials_;
    std::vector<std::size_t> waiting_;  // numbers of trials, the next one last
    std::set<std::vector<Word>> tried_;

    bool guarded_ = false;
    bool came_again_ = false;                    // a class was visited twice
    std::unordered_set<std::uint64_t> visited_;  // classes since the climb began
    std::size_t unchecked_ = 0;                  // changes since gains were last added up
    std::vector<double> first_scores_;           // of variables in the first class
    std::vector<Word> starts_;
    std::vector<Word> nothing_;
    std::vector<Word> found_;
    InUse in_use_;
};

}  // namespace isthmus

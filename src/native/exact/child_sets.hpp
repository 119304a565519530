#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "exact/exhaustive_sets.hpp"
#include "exact/promising_sets.hpp"
#include "exact/set_list.hpp"
#include "orders/rules.hpp"
#include "scoring/score_bound.hpp"

namespace isthmus {

/// What all children of one score table share.
struct TableProblem {
    std::shared_ptr<const LocalScore> score;
    std::shared_ptr<const ScoreBound> bound;
    Rules rules;                       // a bound on the parents that is at least d is none
    double slack;                      // sets may score this much less than a subset
    std::optional<std::size_t> quota;  // maximum number of scored sets per child

    [[nodiscard]] std::size_t size() const { return rules.size(); }
};

/// Lists the parent sets of one child of a score table.
///
/// Without a quota all useful sets are listed by size. With one, and few variables, half of it goes
/// to the smallest sets and the rest to promising ones; with many variables all of it does. Unlike
/// a time limit a quota gives the same table on every machine.
class ChildSets {
public:
    /// The problem must outlive this object.
    ChildSets(const TableProblem& problem, Variable child);

    /// Goes on to the end; after a pause the same call goes on.
    void run(Watch& watch);
    /// Turns to promising sets at once, and lists by size when nothing is promising any more.
    void hurry();
    /// Ends with what is there, which the next call of `run` sorts.
    void stop();

    [[nodiscard]] std::size_t scored() const;
    /// Whether every useful set is listed; known at the end.
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] SetList take() { return std::move(list_); }
    /// A list of what was found so far; at least one set must have been scored.
    [[nodiscard]] SetList so_far(Watch& watch) const;

private:
    enum class Stage { listing, quota, hurrying, finishing, done };

    void list_by_size(Watch& watch);
    void use_quota(Watch& watch);
    void list_in_a_hurry(Watch& watch);
    void finish(Watch& watch);
    void begin_promising();
    [[nodiscard]] SetListBuilder list_builder() const;
    [[nodiscard]] std::size_t first_share() const;

    const TableProblem& problem_;
    Variable child_;
    ExhaustiveSets exhaustive_;
    std::optional<PromisingSets> promising_;
    Stage stage_ = Stage::listing;
    std::optional<std::size_t> before_;  // promising sets that were scored before this step
    bool nothing_promising_ = false;
    bool complete_ = false;
    std::optional<SetListBuilder> builder_;
    SetList list_;
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/exclusive.hpp"
#include "core/pool.hpp"
#include "exact/child_sets.hpp"

namespace isthmus {

/// Builds a score table: for each child the parent sets that can be part of a best graph.
///
/// Children are independent of each other. What is listed for one depends neither on the others nor
/// on how many are worked on at the same time.
class TableBuilder {
public:
    /// The lists of all children, in their order.
    struct Table {
        std::vector<std::int64_t> starts{0};
        std::vector<Word> sets;
        std::vector<double> scores;
    };

    /// `jobs` threads work on children; 0 means one for each processor.
    TableBuilder(TableProblem problem, std::vector<Variable> children, std::size_t jobs);

    /// Goes on until the watch ends the slice; returns whether all children are done.
    bool step(Watch& watch);
    /// Turns the children that are not done to promising sets; see `ChildSets::hurry`.
    void hurry();
    /// Ends the children under way with what is there; a step is needed to sort it.
    void skip();
    /// Ends the listing. Steps then give children that were not reached their smallest set, after
    /// which the table is ready, and then sets of one parent, until all are done.
    void close();

    [[nodiscard]] bool done() const { return next_ == children_.size() && active_.empty(); }
    /// Whether every child has a set, so that there is a table.
    [[nodiscard]] bool ready() const;
    /// Whether every useful set of every child is listed.
    [[nodiscard]] bool complete() const { return complete_ && done(); }
    [[nodiscard]] std::size_t finished() const { return next_ - active_.size(); }
    [[nodiscard]] std::size_t children() const { return children_.size(); }
    [[nodiscard]] std::size_t scored() const;
    [[nodiscard]] const TableProblem& problem() const { return problem_; }
    /// The lists of the children that have begun, for those under way as far as they are.
    [[nodiscard]] Table so_far(Watch& watch) const;
    /// The table; the builder must be ready.
    [[nodiscard]] Table table(Watch& watch) const;

    /// Two threads must not use one builder at the same time; bindings claim it.
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    /// A child under way.
    struct Task {
        Task(std::size_t place, const TableProblem& problem, Variable child)
            : position{place}, sets{problem, child} {}
        std::size_t position;
        ChildSets sets;
        bool done = false;
    };

    void find_smallest(Watch& watch);
    [[nodiscard]] SetList smallest(Variable child, ExtensionBatch& batch, Watch& watch) const;
    static void append(Table& table, const SetList& list);
    [[nodiscard]] std::unique_ptr<Task> begin(std::size_t position) const;
    void collect(std::vector<std::unique_ptr<Task>>& begun);

    TableProblem problem_;
    TableProblem small_;  // one parent at most: what is left for children that were not reached
    std::vector<Variable> children_;
    Pool pool_;
    std::vector<SetList> lists_;
    std::vector<std::unique_ptr<Task>> active_;
    std::size_t next_ = 0;    // of the children, the next to begin
    std::size_t scored_ = 0;  // for the children that are done
    bool complete_ = true;
    bool hurried_ = false;
    bool closed_ = false;
    std::size_t reached_ = 0;   // children that had begun when the listing was closed
    std::size_t smallest_ = 0;  // children that have a set then, those included
    ExtensionBatch batch_;
    InUse in_use_;
};

}  // namespace isthmus

#include "exact/table_builder.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace isthmus {

namespace {

Rules with_one_parent(const Rules& rules) {
    Rules small = rules;
    small.limit_parents(std::min<std::size_t>(1, rules.max_parents()));
    return small;
}

}  // namespace

TableBuilder::TableBuilder(TableProblem problem, std::vector<Variable> children, std::size_t jobs)
    : problem_{std::move(problem)},
      small_{problem_.score, problem_.bound, with_one_parent(problem_.rules), 0.0, {}},
      children_{std::move(children)},
      pool_{jobs},
      lists_(children_.size()) {
    const std::size_t d = problem_.size();
    if (problem_.score->size() != d || problem_.bound->size() != d) {
        throw std::invalid_argument{"score, bound and rules must be over the same variables"};
    }
    for (const Variable child : children_) {
        if (child < 0 || static_cast<std::size_t>(child) >= d) {
            throw std::out_of_range{"there is no such child"};
        }
    }
}

bool TableBuilder::step(Watch& watch) {
    run_slice([&] {
        if (closed_) find_smallest(watch);
        // Children under way come first, so that a pause leaves no more of them than threads.
        std::vector<Task*> open;
        for (const auto& task : active_) open.push_back(task.get());
        const std::size_t under_way = open.size();
        const std::size_t first = next_;
        open.resize(under_way + children_.size() - first);
        std::vector<std::unique_ptr<Task>> begun(children_.size() - first);
        const auto work = [&](std::size_t piece, Watch& own) {
            if (piece >= under_way) {
                const std::size_t position = first + piece - under_way;
                begun[position - first] = begin(position);
                open[piece] = begun[position - first].get();
            }
            open[piece]->sets.run(own);
            open[piece]->done = true;
            own.poll();
        };
        try {
            pool_.run(open.size(), watch, work);
        } catch (...) {
            collect(begun);
            throw;
        }
        collect(begun);
    });
    return done();
}

std::unique_ptr<TableBuilder::Task> TableBuilder::begin(std::size_t position) const {
    auto task = std::make_unique<Task>(position, closed_ ? small_ : problem_, children_[position]);
    if (hurried_ && !closed_) task->sets.hurry();
    return task;
}

/// Takes over what the threads did: pieces begin in their order, so the children do too.
void TableBuilder::collect(std::vector<std::unique_ptr<Task>>& begun) {
    for (auto& task : begun) {
        if (!task) break;
        active_.push_back(std::move(task));
        ++next_;
    }
    for (const auto& task : active_) {
        if (!task->done) continue;
        lists_[task->position] = task->sets.take();
        scored_ += task->sets.scored();
        complete_ = complete_ && task->sets.complete();
    }
    std::erase_if(active_, [](const auto& task) { return task->done; });
}

void TableBuilder::hurry() {
    hurried_ = true;
    for (const auto& task : active_) task->sets.hurry();
}

void TableBuilder::skip() {
    for (const auto& task : active_) task->sets.stop();
}

void TableBuilder::close() {
    if (closed_ || done()) return;
    closed_ = true;
    complete_ = false;
    reached_ = smallest_ = next_;
    skip();
}

/// Gives the children that were not reached their smallest set.
void TableBuilder::find_smallest(Watch& watch) {
    while (smallest_ < children_.size()) {
        lists_[smallest_] = smallest(children_[smallest_], batch_, watch);
        ++smallest_;
        watch.poll();
    }
}

SetList TableBuilder::smallest(Variable child, ExtensionBatch& batch, Watch& watch) const {
    const auto base = problem_.rules.required(child);
    const auto values = batch.run(*problem_.score, child, base, {}, watch);
    SetList list{.sets = std::vector<Word>(words_for(problem_.size())), .scores = {values[0]}};
    for (const Variable p : base) add(list.sets, p);
    return list;
}

bool TableBuilder::ready() const {
    if (!closed_ || done()) return done();
    return smallest_ == children_.size() && std::ranges::none_of(active_, [&](const auto& task) {
               return task->position < reached_;
           });
}

std::size_t TableBuilder::scored() const {
    std::size_t total = scored_;
    for (const auto& task : active_) total += task->sets.scored();
    return total;
}

TableBuilder::Table TableBuilder::table(Watch& watch) const {
    if (!ready()) throw std::logic_error{"the table is not ready"};
    Table table;
    std::size_t lines = 0;
    for (const SetList& list : lists_) lines += list.scores.size();
    table.scores.reserve(lines);
    table.sets.reserve(lines * words_for(problem_.size()));
    for (const SetList& list : lists_) {
        append(table, list);
        watch.poll_signals();
    }
    return table;
}

TableBuilder::Table TableBuilder::so_far(Watch& watch) const {
    std::vector<const ChildSets*> under_way(next_);
    for (const auto& task : active_) under_way[task->position] = &task->sets;
    Table table;
    ExtensionBatch batch;
    for (std::size_t i = 0; i < next_; ++i) {
        if (under_way[i] == nullptr) {
            append(table, lists_[i]);
        } else if (under_way[i]->scored() == 0) {
            append(table, smallest(children_[i], batch, watch));
        } else {
            append(table, under_way[i]->so_far(watch));
        }
        watch.poll_signals();
    }
    return table;
}

void TableBuilder::append(Table& table, const SetList& list) {
    table.scores.insert(table.scores.end(), list.scores.begin(), list.scores.end());
    table.sets.insert(table.sets.end(), list.sets.begin(), list.sets.end());
    table.starts.push_back(static_cast<std::int64_t>(table.scores.size()));
}

}  // namespace isthmus

#include "exact/table_builder.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace isthmus {

namespace {

Rules with_one_parent(const Rules& rules) {
    Rules small = rules;
    small.limit_parents(std::min<std::size_t>(1, rules.max_parents()));
    return small;
}

/// Runs `work` in several threads at once, in this one with `watch`, until all have returned or one
/// of them throws. It pauses in the other threads as often as it likes.
template <class Work>
void run_together(std::size_t jobs, Watch& watch, const Work& work) {
    std::atomic<bool> ended = false;
    std::atomic<std::size_t> running = jobs - 1;
    std::vector<std::exception_ptr> failures(jobs);
    const auto guarded = [&](std::size_t job, const auto& action, Watch& own) {
        try {
            action(own);
        } catch (const Paused&) {
            return true;
        } catch (...) {
            failures[job] = std::current_exception();
            ended = true;
        }
        return false;
    };
    bool paused = false;
    {
        std::vector<std::jthread> threads;
        for (std::size_t job = 1; job < jobs; ++job) {
            threads.emplace_back([&, job] {
                bool again = true;
                while (again && !ended) {
                    // Signals are heard in this thread only, so the others look up often.
                    Watch slice{Watch::signal_interval / 2, nullptr};
                    again = guarded(job, work, slice);
                }
                --running;
            });
        }
        paused = guarded(0, [&](Watch& own) {
            work(own);
            while (running > 0 && !ended) {
                own.poll();
                std::this_thread::sleep_for(std::chrono::microseconds{200});
            }
        }, watch);
        if (paused) ended = true;
    }
    for (const auto& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
    if (paused) throw Paused{};
}

}  // namespace

TableBuilder::TableBuilder(TableProblem problem, std::vector<Variable> children, std::size_t jobs)
    : problem_{std::move(problem)},
      small_{problem_.score, problem_.bound, with_one_parent(problem_.rules), 0.0, {}},
      children_{std::move(children)},
      jobs_{std::max<std::size_t>(1, jobs)},
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
    try {
        if (closed_) find_smallest(watch);
        const std::size_t left = children_.size() - finished();
        run_together(std::clamp<std::size_t>(left, 1, jobs_), watch,
                     [this](Watch& own) { work(own); });
    } catch (const Paused&) {
        // All that was computed is kept: the next step goes on from here.
    }
    return done();
}

void TableBuilder::work(Watch& watch) {
    while (Task* const task = next_task()) {
        try {
            task->sets.run(watch);
        } catch (...) {
            const std::scoped_lock lock{mutex_};
            task->busy = false;
            throw;
        }
        finish(*task);
        watch.poll();
    }
}

/// A child that nobody works on, or the next one.
TableBuilder::Task* TableBuilder::next_task() {
    const std::scoped_lock lock{mutex_};
    const auto free = std::ranges::find(active_, false, [](const auto& task) { return task->busy; });
    Task* task = free == active_.end() ? nullptr : free->get();
    if (task == nullptr && next_ < children_.size()) {
        active_.push_back(std::make_unique<Task>(next_, closed_ ? small_ : problem_,
                                                 children_[next_]));
        task = active_.back().get();
        ++next_;
        if (hurried_ && !closed_) task->sets.hurry();
    }
    if (task != nullptr) task->busy = true;
    return task;
}

void TableBuilder::finish(Task& task) {
    const std::scoped_lock lock{mutex_};
    lists_[task.position] = task.sets.take();
    scored_ += task.sets.scored();
    complete_ = complete_ && task.sets.complete();
    std::erase_if(active_, [&](const auto& other) { return other.get() == &task; });
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
        const Variable child = children_[smallest_];
        const auto base = problem_.rules.required(child);
        const auto values = batch_.run(*problem_.score, child, base, {}, watch);
        SetList& list = lists_[smallest_];
        list.scores.assign(1, values[0]);
        list.sets.assign(words_for(problem_.size()), 0);
        for (const Variable p : base) add(list.sets, p);
        ++smallest_;
        watch.poll();
    }
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
    table.starts.push_back(0);
    for (const SetList& list : lists_) {
        table.scores.insert(table.scores.end(), list.scores.begin(), list.scores.end());
        table.sets.insert(table.sets.end(), list.sets.begin(), list.sets.end());
        table.starts.push_back(static_cast<std::int64_t>(table.scores.size()));
        watch.poll_signals();
    }
    return table;
}

}  // namespace isthmus

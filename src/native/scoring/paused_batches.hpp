#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// What was computed of batches that a watch interrupted.
///
/// A search that was paused in the middle of a batch asks for the same batch again. Without a memory
/// of the first results, a batch that takes longer than a time slice would never be finished.
class PausedBatches {
public:
    using Question = std::vector<Variable>;

    /// Copies earlier results of this question to `out` and forgets them; returns how many steps of
    /// the batch they are.
    std::size_t resume(const Question& question, std::span<double> out);
    void keep(Question question, std::span<const double> out, std::size_t steps);
    [[nodiscard]] bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

private:
    struct Batch {
        Question question;
        std::vector<double> values;
        std::size_t steps;
    };

    static constexpr std::size_t most = 64;

    std::mutex mutex_;
    std::atomic<std::size_t> count_ = 0;
    std::vector<Batch> batches_;
};

/// One batch as it is computed: a fixed sequence of steps, each of which stores a result.
class BatchSteps {
public:
    /// `kind` tells apart questions about the same variables.
    BatchSteps(PausedBatches& paused, Variable kind, Variable child, Variables parents,
               Variables candidates, std::span<double> out)
        : paused_{paused},
          kind_{kind},
          child_{child},
          parents_{parents},
          candidates_{candidates},
          out_{out} {
        if (!paused.empty()) resumed_ = paused.resume(question(), out);
    }

    /// Whether the result of the next step is wanted, or known from before.
    [[nodiscard]] bool next() { return step_++ >= resumed_; }

    /// Computes the result of this step. If that is interrupted, the steps before are kept.
    template <class Work>
    void guard(const Work& work) {
        try {
            work();
        } catch (...) {
            paused_.keep(question(), out_, step_ - 1);
            throw;
        }
    }

    /// Polls after some results have been stored.
    void poll(Watch& watch) {
        try {
            watch.poll();
        } catch (...) {
            paused_.keep(question(), out_, step_);
            throw;
        }
    }

private:
    [[nodiscard]] PausedBatches::Question question() const {
        PausedBatches::Question all{kind_, child_, static_cast<Variable>(parents_.size())};
        all.insert(all.end(), parents_.begin(), parents_.end());
        all.insert(all.end(), candidates_.begin(), candidates_.end());
        return all;
    }

    PausedBatches& paused_;
    Variable kind_;
    Variable child_;
    Variables parents_;
    Variables candidates_;
    std::span<double> out_;
    std::size_t step_ = 0;
    std::size_t resumed_ = 0;
};

}  // namespace isthmus

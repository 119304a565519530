#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "scoring/local_score.hpp"

namespace isthmus {

/// Scores the extensions of a parent set in pieces, so that a batch can be paused and go on.
///
/// A score does not pause within one call: it would have to begin again. Pieces are as large as
/// the score can do in a few milliseconds; values do not depend on them.
class ExtensionBatch {
public:
    /// Begins a batch, or goes on with the one that was left by an exception. Both spans must be the
    /// same then. Returns `score(parents)` followed by the scores of the extensions.
    std::span<const double> run(const LocalScore& score, Variable child, Variables parents,
                                Variables candidates, Watch& watch) {
        if (!running_) {
            done_ = 0;
            begun_ = false;
            running_ = true;
            if (values_.size() < candidates.size() + 1) values_.resize(candidates.size() + 1);
        }
        while (!begun_ || done_ < candidates.size()) {
            const std::size_t count = std::min(piece_, candidates.size() - done_);
            score.extensions(child, parents, candidates.subspan(done_, count),
                             {values_.data() + done_, count + 1}, watch);
            // Each piece wrote the score of the parents over the last value of the piece before.
            if (begun_) values_[done_] = last_;
            begun_ = true;
            done_ += count;
            last_ = values_[done_];
            look_up(count, watch);
        }
        running_ = false;
        return {values_.data(), candidates.size() + 1};
    }

private:
    /// Polls from time to time: reading the clock costs as much as a cheap score.
    void look_up(std::size_t count, Watch& watch) {
        since_ += count + 4;
        if (since_ < std::min<std::size_t>(piece_, 128)) return;
        const auto now = Watch::Clock::now();
        const auto took = now - looked_up_;
        if (took < std::chrono::milliseconds{1}) {
            piece_ = std::min<std::size_t>(2 * piece_, 4096);
        } else if (took > std::chrono::milliseconds{4}) {
            piece_ = std::max<std::size_t>(1, std::min(piece_, since_) / 2);
        }
        since_ = 0;
        looked_up_ = now;
        watch.poll();
    }

    std::vector<double> values_;
    std::size_t piece_ = 64;
    std::size_t done_ = 0;
    std::size_t since_ = 0;  // about how many were scored since then
    Watch::Clock::time_point looked_up_{};
    double last_ = 0.0;
    bool begun_ = false;
    bool running_ = false;
};

}  // namespace isthmus

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
/// the score can do in a few milliseconds. Values do not depend on the pieces.
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
            const auto start = Watch::Clock::now();
            score.extensions(child, parents, candidates.subspan(done_, count),
                             {values_.data() + done_, count + 1}, watch);
            adapt(Watch::Clock::now() - start, count);
            // Each piece wrote the score of the parents over the last value of the piece before.
            if (begun_) values_[done_] = last_;
            begun_ = true;
            done_ += count;
            last_ = values_[done_];
            watch.poll();
        }
        running_ = false;
        return {values_.data(), candidates.size() + 1};
    }

private:
    void adapt(Watch::Clock::duration took, std::size_t count) {
        if (count == piece_ && took < std::chrono::milliseconds{1}) {
            piece_ = std::min(2 * piece_, std::size_t{1} << 20);
        } else if (took > std::chrono::milliseconds{4}) {
            piece_ = std::max<std::size_t>(1, std::min(piece_, count) / 2);
        }
    }

    std::vector<double> values_;
    std::size_t piece_ = 64;
    std::size_t done_ = 0;
    double last_ = 0.0;
    bool begun_ = false;
    bool running_ = false;
};

}  // namespace isthmus

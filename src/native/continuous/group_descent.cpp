#include "continuous/group_descent.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "continuous/vectors.hpp"

namespace isthmus {

GroupDescent::GroupDescent(std::span<const double> features, std::vector<Variable> starts,
                           std::vector<double> steeps)
    : features_{features},
      starts_{std::move(starts)},
      steeps_{std::move(steeps)},
      size_{starts_.empty() ? 0 : static_cast<std::size_t>(std::max<Variable>(starts_.back(), 0))},
      problem_{} {
    if (starts_.size() != steeps_.size() + 1) {
        throw std::invalid_argument{"there must be one start more than groups"};
    }
    if (starts_.front() != 0 || !std::ranges::is_sorted(starts_)) {
        throw std::invalid_argument{"the starts of groups must ascend from zero"};
    }
    if (size_ == 0 ? !features_.empty()
                   : features_.size() % size_ != 0 || features_.size() / size_ != size_) {
        throw std::invalid_argument{"features must be square, with a row per coefficient"};
    }
}

void GroupDescent::begin(Problem problem, std::vector<double> coefficients) {
    if (problem.cross.size() != size_ || coefficients.size() != size_) {
        throw std::invalid_argument{"cross and coefficients need one entry per feature"};
    }
    if (problem.penalties.size() != groups()) {
        throw std::invalid_argument{"one penalty per group is needed"};
    }
    for (const Variable cause : problem.causes) {
        if (cause < 0 || static_cast<std::size_t>(cause) >= groups()) {
            throw std::invalid_argument{"a cause names a group that does not exist"};
        }
    }
    problem_ = std::move(problem);
    coefficients_ = std::move(coefficients);
    gradient_.resize(size_);
    delta_.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) gradient_[i] = -problem_.cross[i];
    filled_ = 0;
    at_ = 0;
    sweeps_ = 0;
    worst_ = 0.0;
    everything_ = true;
    finished_ = problem_.limit == 0;
}

bool GroupDescent::step(Watch& watch) {
    try {
        advance(watch);
    } catch (const Paused&) {
        // All that was computed is kept: the next step goes on from here.
    }
    return finished_;
}

void GroupDescent::advance(Watch& watch) {
    if (finished_) return;  // or nothing was begun
    while (filled_ < size_) {
        const double c = coefficients_[filled_];
        if (c != 0.0) add_scaled(gradient_.data(), features_.data() + filled_ * size_, c, size_);
        ++filled_;
        if (c != 0.0) watch.poll();
    }
    while (!finished_) {
        if (at_ == problem_.causes.size()) {
            end_sweep();
            watch.poll();
            continue;
        }
        const bool moved = move(static_cast<std::size_t>(problem_.causes[at_]));
        ++at_;
        // A group that stays at zero costs less than a look at the clock.
        if (moved || at_ % 64 == 0) watch.poll();
    }
}

bool GroupDescent::idle(std::size_t start, std::size_t stop) const {
    return std::ranges::all_of(std::span{coefficients_}.subspan(start, stop - start),
                               [](double c) { return c == 0.0; });
}

/// Returns whether the gradient changed.
bool GroupDescent::move(std::size_t group) {
    const auto start = static_cast<std::size_t>(starts_[group]);
    const auto stop = static_cast<std::size_t>(starts_[group + 1]);
    const double steep = steeps_[group];
    if (start == stop || steep <= 0.0) return false;
    if (!everything_ && idle(start, stop)) return false;
    double norm = 0.0;
    for (std::size_t i = start; i < stop; ++i) {
        delta_[i] = coefficients_[i] - gradient_[i] / steep;
        norm += delta_[i] * delta_[i];
    }
    norm = std::sqrt(norm);
    const double penalty = problem_.penalties[group];
    const double shrink = norm * steep > penalty ? 1.0 - penalty / (steep * norm) : 0.0;
    for (std::size_t i = start; i < stop; ++i) {
        delta_[i] = delta_[i] * shrink - coefficients_[i];
        worst_ = std::max(worst_, steep * std::abs(delta_[i]));
    }
    bool moved = false;
    for (std::size_t j = start; j < stop; ++j) {
        coefficients_[j] += delta_[j];
        moved = moved || delta_[j] != 0.0;
    }
    if (!moved) return false;
    add_scaled_rows(gradient_.data(), features_.data() + start * size_, size_,
                    delta_.data() + start, stop - start, size_);
    return true;
}

void GroupDescent::end_sweep() {
    ++sweeps_;
    at_ = 0;
    const bool settled = worst_ <= problem_.tolerance;
    finished_ = (settled && everything_) || sweeps_ == problem_.limit;
    // Groups at zero are looked at again once the others have settled.
    everything_ = settled;
    worst_ = 0.0;
}

}  // namespace isthmus

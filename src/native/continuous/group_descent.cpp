#include "continuous/group_descent.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "continuous/vectors.hpp"

namespace isthmus {

namespace {

bool is_zero(std::span<const double> values) {
    return std::ranges::all_of(values, [](double value) { return value == 0.0; });
}

}  // namespace

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
    phase_ = Phase::fill;
    row_ = 0;
    at_ = 0;
    sweeps_ = 0;
    worst_ = 0.0;
    finished_ = problem_.limit == 0;
}

bool GroupDescent::step(Watch& watch) {
    run_slice([&] {
        advance(watch);
    });
    return finished_;
}

void GroupDescent::advance(Watch& watch) {
    while (!finished_) {  // nothing was begun, or all is done
        switch (phase_) {
            case Phase::fill: fill(watch); break;
            case Phase::all: sweep_all(watch); break;
            case Phase::gather: gather(watch); break;
            case Phase::active: sweep_active(watch); break;
            case Phase::scatter: scatter(watch); break;
        }
    }
}

/// Computes the gradient.
void GroupDescent::fill(Watch& watch) {
    while (row_ < size_) {
        const double c = coefficients_[row_];
        if (c != 0.0) add_scaled(gradient_.data(), features_.data() + row_ * size_, c, size_);
        ++row_;
        if (c != 0.0) watch.poll();
    }
    phase_ = Phase::all;
}

/// Moves all groups.
void GroupDescent::sweep_all(Watch& watch) {
    while (at_ < problem_.causes.size()) {
        const auto group = static_cast<std::size_t>(problem_.causes[at_]);
        const bool moved = move(group, begin_of(group), coefficients_, gradient_, features_);
        ++at_;
        // A group that stays at zero costs less than a look at the clock.
        if (moved || at_ % 64 == 0) watch.poll();
    }
    if (end_sweep()) {
        finished_ = true;
    } else {
        choose_active();
        phase_ = Phase::gather;
    }
}

/// Lists the groups that are not zero, and copies their coefficients and gradients.
void GroupDescent::choose_active() {
    active_.clear();
    places_.clear();
    std::vector<bool> chosen(groups());
    for (const Variable cause : problem_.causes) {
        const auto group = static_cast<std::size_t>(cause);
        const std::span<const double> own = part(coefficients_, begin_of(group), group);
        if (chosen[group] || is_zero(own)) continue;
        chosen[group] = true;
        active_.push_back({group, places_.size()});
        for (std::size_t i = 0; i < own.size(); ++i) places_.push_back(begin_of(group) + i);
    }
    // A copy of nearly everything would save nothing.
    copied_ = 2 * places_.size() <= size_;
    if (!copied_) {
        for (Active& active : active_) active.place = begin_of(active.group);
        places_.clear();
    }
    active_coefficients_.resize(places_.size());
    active_gradient_.resize(places_.size());
    for (std::size_t m = 0; m < places_.size(); ++m) {
        active_coefficients_[m] = coefficients_[places_[m]];
        active_gradient_[m] = gradient_[places_[m]];
    }
    active_features_.clear();
    active_features_.reserve(places_.size() * places_.size());
    row_ = 0;
}

/// Copies the features of the groups that are not zero.
void GroupDescent::gather(Watch& watch) {
    while (row_ < places_.size()) {
        const double* const from = features_.data() + places_[row_] * size_;
        for (const std::size_t place : places_) active_features_.push_back(from[place]);
        ++row_;
        watch.poll();
    }
    phase_ = Phase::active;
}

/// Moves the groups that are not zero until they settle.
void GroupDescent::sweep_active(Watch& watch) {
    const std::span<double> coefficients = copied_ ? active_coefficients_ : coefficients_;
    const std::span<double> gradient = copied_ ? active_gradient_ : gradient_;
    const std::span<const double> features = copied_ ? std::span<const double>{active_features_}
                                                     : features_;
    while (true) {
        while (at_ < active_.size()) {
            const auto [group, place] = active_[at_];
            const bool moved = !is_zero(part(coefficients, place, group)) &&
                               move(group, place, coefficients, gradient, features);
            ++at_;
            if (moved || at_ % 64 == 0) watch.poll();
        }
        const bool settled = end_sweep();
        finished_ = sweeps_ == problem_.limit;
        if (settled || finished_) break;
        watch.poll();
    }
    changes_.resize(places_.size());
    for (std::size_t m = 0; m < places_.size(); ++m) {
        changes_[m] = active_coefficients_[m] - coefficients_[places_[m]];
        coefficients_[places_[m]] = active_coefficients_[m];
    }
    row_ = 0;
    phase_ = Phase::scatter;
}

/// Brings the gradient of all groups up to date.
void GroupDescent::scatter(Watch& watch) {
    while (row_ < places_.size()) {
        const double* const row = features_.data() + places_[row_] * size_;
        const double change = changes_[row_];
        if (change != 0.0) add_scaled(gradient_.data(), row, change, size_);
        ++row_;
        watch.poll();
    }
    for (std::size_t m = 0; m < places_.size(); ++m) {
        gradient_[places_[m]] = active_gradient_[m];
    }
    phase_ = Phase::all;
}

/// Moves one group, whose coefficients begin at `place` in arrays of all groups or of some.
/// Returns whether the gradient changed.
bool GroupDescent::move(std::size_t group, std::size_t place, std::span<double> coefficients,
                        std::span<double> gradient, std::span<const double> features) {
    const std::size_t length = coefficients.size();
    const double steep = steeps_[group];
    if (size_of(group) == 0 || steep <= 0.0) return false;
    const std::span<double> own = coefficients.subspan(place, size_of(group));
    const std::span<double> delta = std::span{delta_}.first(own.size());
    double norm = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i) {
        delta[i] = own[i] - gradient[place + i] / steep;
        norm += delta[i] * delta[i];
    }
    norm = std::sqrt(norm);
    const double penalty = problem_.penalties[group];
    const double shrink = norm * steep > penalty ? 1.0 - penalty / (steep * norm) : 0.0;
    bool moved = false;
    for (std::size_t i = 0; i < own.size(); ++i) {
        delta[i] = delta[i] * shrink - own[i];
        worst_ = std::max(worst_, steep * std::abs(delta[i]));
        own[i] += delta[i];
        moved = moved || delta[i] != 0.0;
    }
    if (!moved) return false;
    add_scaled_rows(gradient.data(), features.data() + place * length, length, delta.data(),
                    own.size(), length);
    return true;
}

/// Returns whether nothing moved by more than the tolerance, or no sweep is left.
bool GroupDescent::end_sweep() {
    ++sweeps_;
    at_ = 0;
    return std::exchange(worst_, 0.0) <= problem_.tolerance || sweeps_ == problem_.limit;
}

}  // namespace isthmus

#include "continuous/barrier_sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "continuous/vectors.hpp"

namespace isthmus {

BarrierSweeps::BarrierSweeps(Matrix<double> moments, Matrix<std::uint8_t> open, double radius)
    : moments_{std::move(moments)},
      open_{std::move(open)},
      radius_{radius},
      incoming_{moments_.columns(), moments_.columns()},
      inverse_{moments_.columns()},
      sweep_{{}, {}, Matrix<double>{0, 0}, 0.0, 0.0},
      solver_{moments_.columns()},
      curb_(moments_.columns()),
      before_(moments_.columns()),
      row_(moments_.columns()) {
    if (moments_.rows() != moments_.columns()) {
        throw std::invalid_argument{"the moments must be a square matrix"};
    }
    if (open_.rows() != variables() || open_.columns() != variables()) {
        throw std::invalid_argument{"open must have one row and one column per variable"};
    }
    if (!(radius > 0.0) || !std::isfinite(radius)) {
        throw std::invalid_argument{"the radius must be positive and finite"};
    }
}

void BarrierSweeps::begin(Sweep sweep) {
    const std::size_t d = variables();
    for (const Variable v : sweep.turns) {
        if (v < 0 || static_cast<std::size_t>(v) >= d) {
            throw std::invalid_argument{"a turn names a variable that does not exist"};
        }
    }
    if (sweep.scale.size() != d) throw std::invalid_argument{"one scale per variable is needed"};
    if (sweep.penalty.rows() != d || sweep.penalty.columns() != d) {
        throw std::invalid_argument{"penalty must have one row and one column per variable"};
    }
    if (next_ < sweep_.turns.size() && stage_ != Stage::begin_column) {
        throw std::logic_error{"the last sweep is not finished"};
    }
    sweep_ = std::move(sweep);
    stage_ = Stage::begin_column;
    next_ = 0;
    moved_ = 0.0;
}

bool BarrierSweeps::step(Watch& watch) {
    run_slice([&] {
        advance(watch);
    });
    return next_ == sweep_.turns.size();
}

void BarrierSweeps::advance(Watch& watch) {
    while (next_ < sweep_.turns.size()) {
        const auto child = static_cast<std::size_t>(sweep_.turns[next_]);
        if (stage_ == Stage::begin_column) {
            begin_column(child);
            stage_ = Stage::solve_column;
        }
        if (stage_ == Stage::solve_column) {
            solver_.solve(watch);
            end_column(child);
            stage_ = Stage::tidy_inverse;
        }
        inverse_.tidy(watch);
        stage_ = Stage::begin_column;
        ++next_;
        watch.poll();
    }
}

void BarrierSweeps::begin_column(std::size_t child) {
    const auto weights = incoming_.row(child);
    inverse_.row(child, row_);
    const double whole = row_[child] * radius_;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        curb_[i] = std::max(row_[i] / whole, 0.0);
        before_[i] = weights[i];
    }
    solver_.begin({.moments = moments_,
                   .child = child,
                   .scale = sweep_.scale[child],
                   .penalty = sweep_.penalty.row(child),
                   .open = open_.row(child),
                   .barrier = sweep_.barrier,
                   .curb = curb_,
                   .tolerance = sweep_.tolerance},
                  weights);
}

void BarrierSweeps::end_column(std::size_t child) {
    const auto weights = std::as_const(incoming_).row(child);
    changed_.clear();
    change_.clear();
    double product = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] == before_[i]) continue;
        moved_ = std::max(moved_, std::abs(weights[i] - before_[i]));
        changed_.push_back(i);
        change_.push_back(weights[i] * weights[i] - before_[i] * before_[i]);
        product += row_[i] * change_.back();
    }
    if (!changed_.empty()) inverse_.update(changed_, change_, row_, 1.0 / (1.0 - product));
}

double BarrierSweeps::inverse_error() {
    const std::size_t d = variables();
    std::vector<double> sums(d, radius_);
    for (std::size_t j = 0; j < d; ++j) {
        const auto weights = incoming_.row(j);
        for (std::size_t i = 0; i < d; ++i) sums[i] -= weights[i] * weights[i];
    }
    inverse_.flush();
    std::vector<double> products(d, -1.0);
    for (std::size_t m = 0; m < d; ++m) {
        add_scaled(products.data(), inverse_.column(m).data(), sums[m], d);
    }
    double error = 0.0;
    for (const double product : products) error = std::max(error, std::abs(product));
    return error;
}

void BarrierSweeps::set_inverse(const Matrix<double>& inverse) {
    if (inverse.rows() != variables() || inverse.columns() != variables()) {
        throw std::invalid_argument{"the inverse must have one row and one column per variable"};
    }
    if (next_ < sweep_.turns.size()) throw std::logic_error{"a sweep is under way"};
    inverse_.set(inverse);
}

}  // namespace isthmus

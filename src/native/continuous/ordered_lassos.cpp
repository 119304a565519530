#include "continuous/ordered_lassos.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace isthmus {

namespace {

LassoProblem checked(LassoProblem problem) {
    const std::size_t d = problem.variables();
    const auto square = [d](const auto& matrix) {
        return matrix.rows() == d && matrix.columns() == d;
    };
    if (!square(problem.moments)) {
        throw std::invalid_argument{"the moments must be a square matrix"};
    }
    if (!square(problem.penalty) || !square(problem.open) || !square(problem.required)) {
        throw std::invalid_argument{"matrices must have one row and one column per variable"};
    }
    if (problem.scale.size() != d) throw std::invalid_argument{"one scale per variable is needed"};
    if (!std::ranges::all_of(problem.scale, [](double c) { return c > 0.0 && std::isfinite(c); })) {
        throw std::invalid_argument{"scales must be positive and finite"};
    }
    // An edge from a variable to itself would close a cycle.
    for (std::size_t i = 0; i < d; ++i) problem.open.row(i)[i] = 0;
    return problem;
}

}  // namespace

OrderedLassos::OrderedLassos(LassoProblem problem)
    : problem_{checked(std::move(problem))},
      order_{problem_},
      move_{order_},
      column_{problem_},
      stirred_(problem_.variables()),
      neighbours_(problem_.variables()) {}

void OrderedLassos::start(Variables order, const Matrix<double>& weights) {
    const std::size_t d = variables();
    std::vector<std::size_t> places(d, d);
    if (order.size() != d) throw std::invalid_argument{"every variable must come once"};
    std::vector<std::size_t> variables;
    for (const Variable v : order) {
        const bool inside = v >= 0 && static_cast<std::size_t>(v) < d;
        if (!inside || places[static_cast<std::size_t>(v)] != d) {
            throw std::invalid_argument{"every variable must come once"};
        }
        places[static_cast<std::size_t>(v)] = variables.size();
        variables.push_back(static_cast<std::size_t>(v));
    }
    for (std::size_t j = 0; j < d; ++j) {
        for (std::size_t i = 0; i < d; ++i) {
            if (problem_.required.row(j)[i] != 0 && places[i] >= places[j]) {
                throw std::invalid_argument{"a required parent comes after its child"};
            }
        }
    }
    if (weights.rows() != d || weights.columns() != d) {
        throw std::invalid_argument{"weights must have one row and one column per variable"};
    }
    order_.reset(std::move(variables), weights);
    settled_ = 0;
    solving_ = false;
    moving_ = false;
    turns_.clear();
    next_ = 0;
    fell_ = 0.0;
}

void OrderedLassos::sweep(Variables turns, double least, double worth) {
    if (order_.size() == 0 || settled_ < variables() || moving_) {
        throw std::logic_error{"variables move when all columns are solved and none is moving"};
    }
    turns_.clear();
    for (const Variable v : turns) {
        if (v < 0 || static_cast<std::size_t>(v) >= variables()) {
            throw std::invalid_argument{"a turn names a variable that does not exist"};
        }
        turns_.push_back(static_cast<std::size_t>(v));
    }
    next_ = 0;
    least_ = least;
    worth_ = worth;
    fell_ = 0.0;
    std::ranges::fill(stirred_, std::uint8_t{0});
}

bool OrderedLassos::step(Watch& watch) {
    run_slice([&] {
        advance(watch);
    });
    return settled_ == order_.size() && next_ == turns_.size();
}

void OrderedLassos::advance(Watch& watch) {
    settle(watch);
    while (next_ < turns_.size()) {
        const std::size_t mover = turns_[next_];
        if (!moving_) {
            std::ranges::fill(neighbours_, std::uint8_t{0});
            mark_neighbours(mover);
            move_.begin(mover, least_, worth_);
            moving_ = true;
        }
        const double fell = move_.run(watch);
        moving_ = false;
        stirred_[mover] = 0;
        if (fell > 0.0) {
            fell_ += fell;
            mark_neighbours(mover);
            for (std::size_t i = 0; i < stirred_.size(); ++i) {
                stirred_[i] = stirred_[i] | neighbours_[i];
            }
        }
        ++next_;
        watch.poll();
    }
}

void OrderedLassos::settle(Watch& watch) {
    while (settled_ < order_.size()) {
        const std::size_t child = settled_;
        if (!solving_) {
            const auto open = problem_.open.row(child);
            std::vector<double> weights = order_.column(child).weights;
            for (std::size_t i = 0; i < weights.size(); ++i) {
                if (open[i] == 0 || order_.place(i) >= order_.place(child)) weights[i] = 0.0;
            }
            column_.load(child, weights);
            for (std::size_t p = 0; p < order_.place(child); ++p) {
                if (open[order_.order()[p]] != 0) column_.open(order_.order()[p]);
            }
            solving_ = true;
        }
        column_.solve(watch);
        solving_ = false;
        column_.renew_product();
        order_.store(child, column_.solution());
        ++settled_;
        watch.poll();
    }
}

/// Adds the variables that have an edge with this one that matters.
void OrderedLassos::mark_neighbours(std::size_t variable) {
    const auto& weights = order_.column(variable).weights;
    const double spread = problem_.moments.row(variable)[variable];
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double in = weights[i];
        const double out = order_.column(i).weights[variable];
        const double share = std::max(in * in * problem_.moments.row(i)[i], out * out * spread);
        if (share > worth_) neighbours_[i] = 1;
    }
}

}  // namespace isthmus

#include "screened/gaussian_families.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/simd.hpp"

namespace isthmus {

namespace {

/// Room for factors, which functions work with.
struct Scratch {
    std::vector<double> solved;    // one row for each parent, over candidates and the child
    std::vector<double> variance;  // of candidates and the child, given the parents
    std::vector<double> left;      // of the child, given each candidate as well
    std::vector<double> matrix;
};

Scratch& scratch() {
    thread_local Scratch room;
    return room;
}

/// Takes one more parent out of all columns: `row` becomes its own part, divided by its deviation.
ISTHMUS_CLONES void eliminate(double* row, const double* correlation, const double* solved,
                              const double* factors, std::size_t stride, std::size_t parents,
                              double scale, double* variance, std::size_t width) {
    for (std::size_t j = 0; j < width; ++j) row[j] = correlation[j];
    for (std::size_t t = 0; t < parents; ++t) {
        const double f = factors[t];
        const double* const other = solved + t * stride;
        for (std::size_t j = 0; j < width; ++j) row[j] -= f * other[j];
    }
    for (std::size_t j = 0; j < width; ++j) {
        row[j] *= scale;
        variance[j] -= row[j] * row[j];
    }
}

/// What is left of the child if each candidate is a further parent.
ISTHMUS_CLONES void try_candidates(double* left, const double* correlation, const double* solved,
                                   std::size_t stride, std::size_t parents, const double* variance,
                                   double tolerance, std::size_t width) {
    const std::size_t child = width;
    for (std::size_t j = 0; j < width; ++j) left[j] = correlation[j];
    for (std::size_t t = 0; t < parents; ++t) {
        const double* const row = solved + t * stride;
        const double own = row[child];
        for (std::size_t j = 0; j < width; ++j) left[j] -= own * row[j];
    }
    for (std::size_t j = 0; j < width; ++j) {
        // A candidate that the parents determine explains nothing.
        const double pivot = variance[j] > tolerance ? variance[j] : 1e300;
        left[j] = variance[child] - left[j] * left[j] / pivot;
    }
}

double score_of(const GaussianCriterion& criterion, std::size_t parents, double variance) {
    return criterion.constant[parents] -
           criterion.factor * std::log(std::max(variance, criterion.tolerance));
}

/// The factor of the parents' correlations and the child's, in `room.solved`; returns what is left
/// of the child.
double factor(std::span<const double> correlation, std::size_t width,
              std::span<const FamilyScores::Local> parents, double tolerance, Scratch& room) {
    const std::size_t stride = width + 1;
    const std::size_t k = parents.size();
    room.solved.resize(std::max(room.solved.size(), (k + 1) * stride));
    room.variance.assign(stride, 1.0);
    room.matrix.resize(std::max(room.matrix.size(), k + 1));
    for (std::size_t i = 0; i < k; ++i) {
        const std::size_t p = parents[i];
        for (std::size_t t = 0; t < i; ++t) room.matrix[t] = room.solved[t * stride + p];
        const double pivot = room.variance[p];
        // A parent that the earlier ones determine explains nothing.
        const double scale = pivot > tolerance ? 1.0 / std::sqrt(pivot) : 0.0;
        eliminate(room.solved.data() + i * stride, correlation.data() + p * stride,
                  room.solved.data(), room.matrix.data(), stride, i, scale, room.variance.data(),
                  stride);
    }
    return room.variance[width];
}

}  // namespace

GaussianFamilies::GaussianFamilies(const GaussianCriterion& criterion,
                                   std::vector<double> correlation, std::size_t candidates)
    : criterion_{criterion}, correlation_{std::move(correlation)}, width_{candidates} {
    if (correlation_.size() != (width_ + 1) * (width_ + 1)) {
        throw std::invalid_argument{"the correlations are not those of the candidates and the child"};
    }
}

double GaussianFamilies::extend(std::span<const Local> parents,
                                std::span<const std::uint8_t> allowed, Ranking& raising) const {
    Scratch& room = scratch();
    const std::size_t stride = width_ + 1;
    const std::size_t k = parents.size();
    const double variance = factor(correlation_, width_, parents, criterion_.tolerance, room);
    const double score = score_of(criterion_, k, variance);
    if (k >= criterion_.max_parents || k + 1 >= criterion_.constant.size()) return score;
    room.left.resize(std::max(room.left.size(), width_));
    try_candidates(room.left.data(), correlation_.data() + width_ * stride, room.solved.data(),
                   stride, k, room.variance.data(), criterion_.tolerance, width_);
    // What must be left of the child for the score to rise.
    const double below =
        std::max(variance, criterion_.tolerance) *
        std::exp((criterion_.constant[k + 1] - criterion_.constant[k]) / criterion_.factor);
    for (std::size_t j = 0; j < width_; ++j) {
        if (!(room.left[j] < below) || allowed[j] == 0) continue;
        if (std::ranges::find(parents, j) != parents.end()) continue;
        raising.emplace_back(room.left[j], static_cast<Local>(j));
    }
    return score;
}

void GaussianFamilies::reduce(std::span<const Local> parents, std::size_t first,
                              std::span<double> out) const {
    std::vector<Local> others(parents.begin(), parents.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (i > 0) others[first + i - 1] = parents[first + i - 1];
        const double left =
            factor(correlation_, width_, others, criterion_.tolerance, scratch());
        out[i] = score_of(criterion_, others.size(), left);
    }
}

std::vector<double> GaussianFamilies::coefficients(std::span<const Local> parents) const {
    Scratch& room = scratch();
    const std::size_t stride = width_ + 1;
    const std::size_t k = parents.size();
    (void)factor(correlation_, width_, parents, criterion_.tolerance, room);
    std::vector<double> weight(k);
    for (std::size_t i = k; i-- > 0;) {
        // Row i of the factor over later parents, and over the child.
        double s = room.solved[i * stride + width_];
        for (std::size_t j = i + 1; j < k; ++j) s -= room.solved[i * stride + parents[j]] * weight[j];
        const double own = room.solved[i * stride + parents[i]];
        weight[i] = own > 0.0 ? s / own : 0.0;
    }
    return weight;
}

}  // namespace isthmus

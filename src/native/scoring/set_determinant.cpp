#include "scoring/set_determinant.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace isthmus {

namespace {

/// A sum of products in four parts, which the processor adds at the same time.
double dot(const double* a, const double* b, std::size_t size) {
    double part[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        for (std::size_t j = 0; j < 4; ++j) part[j] += a[i + j] * b[i + j];
    }
    for (; i < size; ++i) part[0] += a[i] * b[i];
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/// Sets up to this size are done in a few microseconds, so nobody need look at the clock.
constexpr std::size_t small_set = 64;

/// Pivots below this have lost more digits than a score may lose.
constexpr double few_digits = 1e-6;

}  // namespace

double SetDeterminant::worth(std::size_t nullity, double tolerance) {
    return std::log(tolerance) * (2.0 - std::exp2(1.0 - static_cast<double>(nullity)));
}

double SetDeterminant::log_of(Variables columns, Watch& watch) {
    sorted_.assign(columns.begin(), columns.end());
    std::ranges::sort(sorted_);
    if (sorted_ != set_ || !started_) {
        std::swap(sorted_, set_);
        order_ = set_;
        lower_.assign(set_.size() * set_.size(), 0.0);
        left_.assign(set_.size(), 1.0);
        rank_ = 0;
        log_ = 0.0;
        finished_ = false;
        started_ = true;
    }
    if (finished_) return log_;
    while (add_row()) {
        if (set_.size() > small_set) watch.poll();
    }
    add_digits();
    if (const std::size_t nullity = set_.size() - rank_; nullity > 0) {
        log_ += log_of_combinations() + worth(nullity, tolerance_);
    }
    finished_ = true;
    return log_;
}

/// Eliminates the column of which most is left, an order that reveals the rank. Returns false if
/// none is left that the others do not determine.
bool SetDeterminant::add_row() {
    const std::size_t size = set_.size();
    if (rank_ == size) return false;
    std::size_t next = rank_;
    for (std::size_t i = rank_ + 1; i < size; ++i) {
        if (left_[i] > left_[next]) next = i;
    }
    if (!(left_[next] > tolerance_)) return false;
    std::swap(order_[rank_], order_[next]);
    std::swap(left_[rank_], left_[next]);
    double* const own = lower_.data() + rank_ * size;
    std::swap_ranges(own, own + rank_, lower_.data() + next * size);
    own[rank_] = std::sqrt(left_[rank_]);
    log_ += std::log(left_[rank_]);
    const auto row = correlation_.row(static_cast<std::size_t>(order_[rank_]));
    for (std::size_t i = rank_ + 1; i < size; ++i) {
        double* const other = lower_.data() + i * size;
        const double shared = row[static_cast<std::size_t>(order_[i])] - dot(own, other, rank_);
        other[rank_] = shared / own[rank_];
        left_[i] -= other[rank_] * other[rank_];
    }
    ++rank_;
    return true;
}

/// Computes the logarithm again where pivots, the last of which is the least, have few digits left.
void SetDeterminant::add_digits() {
    if (rank_ == 0 || rank_ > DoubledFactor::most_columns || left_[rank_ - 1] > few_digits) return;
    if (!more_digits_.factor(correlation_, {order_.data(), rank_}, 0.0)) return;
    log_ = 0.0;
    for (std::size_t i = 0; i < rank_; ++i) log_ += std::log(more_digits_.pivot(i));
}

/// The log determinant of I + K'K, where K holds the coefficients of the dependent columns.
double SetDeterminant::log_of_combinations() {
    const std::size_t size = set_.size();
    const std::size_t nullity = size - rank_;
    combinations_.assign(nullity * rank_, 0.0);
    for (std::size_t j = 0; j < nullity; ++j) {
        double* const own = combinations_.data() + j * rank_;
        const double* const solved = lower_.data() + (rank_ + j) * size;
        for (std::size_t i = rank_; i-- > 0;) {
            double s = solved[i];
            for (std::size_t t = i + 1; t < rank_; ++t) s -= lower_[t * size + i] * own[t];
            own[i] = s / lower_[i * size + i];
        }
    }
    // A Cholesky factor of the small matrix takes the place of the one that is no longer needed.
    double sum = 0.0;
    for (std::size_t i = 0; i < nullity; ++i) {
        const double* const a = combinations_.data() + i * rank_;
        double* const own = lower_.data() + i * size;
        for (std::size_t j = 0; j <= i; ++j) {
            const double* const b = combinations_.data() + j * rank_;
            const double* const other = lower_.data() + j * size;
            const double s = (i == j ? 1.0 : 0.0) + dot(a, b, rank_) - dot(own, other, j);
            own[j] = i == j ? std::sqrt(s) : s / other[j];
            if (i == j) sum += std::log(s);
        }
    }
    return sum;
}

double LeastShare::wanted(double tolerance, std::size_t size) {
    return std::max(1e-8, tolerance * static_cast<double>(std::max<std::size_t>(100, 2 * size)));
}

void LeastShare::start(double product, double smallest, double wanted_share) {
    wanted_ = wanted_share;
    // A pivot that is too small is enough to know: nothing is left to be computed.
    computed_ = !(smallest >= wanted_share);
    bound_ = computed_ ? 0.0 : product;
}

void LeastShare::compute(std::span<const double* const> lower) {
    if (computed_) return;
    computed_ = true;
    size_ = lower.size();
    inverse_.resize(((size_ + tile_width - 1) / tile_width) * size_);
    invert_factor(lower, inverse_);
    diagonal_.resize(size_);
    double most = 1.0;
    for (std::size_t j = 0; j < size_; ++j) {
        diagonal_[j] = squares(j, size_);
        // Not std::max: a NaN must not pass for a good factor.
        if (!(diagonal_[j] <= most)) most = diagonal_[j];
    }
    bound_ = 1.0 / most;
}

/// The sum of squares of a column of the inverse, in the rows before `end`.
double LeastShare::squares(std::size_t j, std::size_t end) const {
    double sum = 0.0;
    for (std::size_t i = j; i < end; ++i) sum += at(i, j) * at(i, j);
    return sum;
}

double LeastShare::share_before_last(std::size_t j) const { return 1.0 / squares(j, size_ - 1); }

void LeastShare::regress(std::span<const double> row, std::span<double> coefficients) const {
    for (std::size_t j = 0; j < row.size(); ++j) {
        double sum = 0.0;
        for (std::size_t i = j; i < row.size(); ++i) sum += at(i, j) * row[i];
        coefficients[j] = sum;
    }
}

Tile LeastShare::least_with(std::span<const Tile> rows, const Tile& left) const {
    Tile least;
    largest_inverse(inverse_, diagonal_, rows, left, least);
    for (std::size_t j = 0; j < tile_width; ++j) {
        const double share = 1.0 / least.value[j];
        least.value[j] = share <= left.value[j] ? share : left.value[j];
    }
    return least;
}

}  // namespace isthmus

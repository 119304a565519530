// The part of the Gaussian score for families in which some column is determined by the others, or
// nearly so.

#include <algorithm>
#include <cmath>

#include "scoring/gaussian_scratch.hpp"

namespace isthmus {

namespace {

/// Less than this is left by rounding alone: the column is determined.
constexpr double rounding = 1e-13;

/// Sets whose columns keep this share are a basis that tells beyond doubt what they determine.
constexpr double sound_share = 1e-6;

/// So many times the tolerance is clear of it: no order of the columns finds a lower pivot.
constexpr double clear_factor = 2.0;

/// Still far enough from the tolerance for the determinant of a set to be that of a factor.
constexpr double clear_share = 1e-8;

double sum_of_products(std::span<const double> a, std::span<const double> b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace

/// Starts with the bound on the least share of the family, and computes it if that is not enough.
void GaussianScore::compute_share(const Base& base, std::size_t k, Scratch& room) const {
    // Least squares needs no determinant.
    const double wanted = uses_logarithms_ ? LeastShare::wanted(tolerance_, k + 2) : 0.0;
    room.share.start(base.product * base.variance, std::min(base.smallest, base.variance), wanted);
    room.knows_child = false;
    room.tried_more_digits = false;
    if (!room.share.is_enough()) invert(base, k, room);
}

void GaussianScore::invert(const Base& base, std::size_t k, Scratch& room) {
    if (room.share.is_computed()) return;
    // The factor of the parents with the child's row below it.
    room.own[k] = std::sqrt(base.variance);
    room.rows.clear();
    for (std::size_t i = 0; i < k; ++i) room.rows.push_back(room.lower.data() + i * k);
    room.rows.push_back(room.own.data());
    room.share.compute(room.rows);
}

/// Finds the candidates of a tile with which some column of the family is nearly determined.
void GaussianScore::find_dependent(const Elimination& known, const TileOfVariables& tile,
                                   std::size_t tried, const Tile& rest, const Base& base,
                                   Scratch& room) const {
    const std::size_t k = known.parents.size();
    const std::span lanes{rest.value.data(), tried};
    const auto is_enough = [&](double left) { return room.share.is_enough_with(left); };
    if (std::ranges::all_of(lanes, is_enough)) return;
    invert(base, k, room);
    if (std::ranges::all_of(lanes, is_enough)) return;
    eliminate_child(known, tile, room.solved);
    Tile least = rest;
    if (room.share.is_enough()) least = room.share.least_with({room.solved.data(), k + 1}, rest);
    for (std::size_t j = 0; j < tried; ++j) {
        const bool is_regular = room.share.is_enough() && room.share.is_enough(least.value[j]);
        if (!is_regular && !is_enough(rest.value[j])) room.dependent.push_back(j);
    }
}

/// Factors the family with more digits, if that makes sure that no column is determined.
bool GaussianScore::know_more_digits(Variable child, Variables parents, Scratch& room) const {
    if (room.tried_more_digits) return room.has_more_digits;
    room.tried_more_digits = true;
    room.has_more_digits = false;
    const std::size_t size = parents.size() + 1;
    if (size > DoubledFactor::most_columns) return false;
    room.columns.assign(parents.begin(), parents.end());
    room.columns.push_back(child);
    const double wanted = clear_factor * tolerance_;
    if (!room.more_digits.factor(correlation_, room.columns, wanted)) return false;
    room.exact_share.start(0.0, 1.0, wanted);
    room.exact_share.compute(room.more_digits.rows());
    room.has_more_digits = room.exact_share.is_enough();
    return room.has_more_digits;
}

/// The log determinant of the parents by the factor with more digits.
double GaussianScore::exact_determinant(Variables parents, const Scratch& room) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < parents.size(); ++i) {
        sum += log_scale_[index(parents[i])];
        if (uses_determinant_) sum += std::log(room.more_digits.pivot(i));
    }
    return sum;
}

/// Finds how the parents determine the child, if they do so beyond doubt.
bool GaussianScore::know_child(const Base& base, std::size_t k, Scratch& room) const {
    if (room.knows_child) return true;
    if (!(base.left <= rounding)) return false;
    room.parent_share.start(base.product, base.smallest, sound_share);
    room.rows.clear();
    for (std::size_t i = 0; i < k; ++i) room.rows.push_back(room.lower.data() + i * k);
    room.parent_share.compute(room.rows);
    if (!room.parent_share.is_enough()) return false;
    room.child_coefficients.resize(k);
    room.parent_share.regress({room.own.data(), k}, room.child_coefficients);
    room.child_squares = sum_of_products(room.child_coefficients, room.child_coefficients);
    room.knows_child = true;
    return true;
}

/// Scores a family without a candidate.
double GaussianScore::score_dependent(Variable child, Variables parents, const Base& base,
                                      Scratch& room) const {
    const std::size_t k = parents.size();
    if (know_more_digits(child, parents, room)) {
        const double variance = room.more_digits.pivot(k);
        return score_of({variance, exact_determinant(parents, room)}, child, k);
    }
    if (know_child(base, k, room)) {
        const double log_variance =
            std::log1p(room.child_squares) + SetDeterminant::worth(1, tolerance_);
        return score_logs(child, k, {log_variance, base.log_determinant}, base.variance);
    }
    return score_sets(child, parents, base.variance, room);
}

/// Puts candidates below the factor with more digits; the least share of the family with each.
Tile GaussianScore::exact_shares(Variables tried, Scratch& room) const {
    constexpr std::size_t width = DoubledFactor::width;
    const std::size_t size = room.more_digits.rows().size();
    room.exact_rows.resize(size);
    Tile left{};
    for (std::size_t start = 0; start < tried.size(); start += width) {
        const auto few = tried.subspan(start, std::min(width, tried.size() - start));
        room.more_digits.try_columns(correlation_, few, std::span{room.left}.subspan(start));
        for (std::size_t i = 0; i < size; ++i) {
            std::ranges::copy(room.more_digits.tried_rows(i), room.exact_rows[i].value.data() + start);
        }
        for (std::size_t j = 0; j < few.size(); ++j) left.value[start + j] = room.left[start + j].own;
    }
    return room.exact_share.least_with(room.exact_rows, left);
}

/// Scores the candidates of a tile that depend on the family, or nearly so.
void GaussianScore::score_dependent(Variable child, Variables parents, Variables tried,
                                    const Tile& variance, std::span<double> out, const Base& base,
                                    Scratch& room) const {
    if (room.dependent.empty()) return;
    const bool is_clear = know_more_digits(child, parents, room);
    Tile least{};
    double inside = 0.0;
    if (is_clear) {
        room.tried.clear();
        for (const std::size_t j : room.dependent) room.tried.push_back(tried[j]);
        least = exact_shares(room.tried, room);
        inside = exact_determinant(parents, room);
    }
    for (std::size_t i = 0; i < room.dependent.size(); ++i) {
        const std::size_t j = room.dependent[i];
        if (is_clear && room.exact_share.is_enough(least.value[i])) {
            const double determinant =
                inside + log_scale_[index(tried[j])] +
                (uses_determinant_ ? std::log(room.left[i].before_last) : 0.0);
            out[j] = score_of({room.left[i].last, determinant}, child, parents.size() + 1);
        } else {
            out[j] = score_dependent(child, parents, {tried[j], j, variance.value[j]}, base, room);
        }
    }
}

/// Scores a family with a candidate.
double GaussianScore::score_dependent(Variable child, Variables parents, const Candidate& candidate,
                                      const Base& base, Scratch& room) const {
    const std::size_t k = parents.size();
    room.row.resize(k + 1);
    for (std::size_t i = 0; i <= k; ++i) room.row[i] = room.solved[i].value[candidate.lane];
    const double pivot = 1.0 - sum_of_products({room.row.data(), k}, {room.row.data(), k});
    auto logs = know_child(base, k, room) ? logs_of_determined_child(pivot, room)
                                          : logs_of_free_child(pivot, base, room);
    if (logs) {
        logs->determinant += base.log_determinant + log_scale_[index(candidate.variable)];
        return score_logs(child, k + 1, *logs, candidate.variance);
    }
    auto& columns = room.columns;
    columns.assign(parents.begin(), parents.end());
    columns.push_back(candidate.variable);
    return score_sets(child, std::vector<Variable>{columns}, candidate.variance, room);
}

/// The parents determine the child. Only a candidate that they determine, too, changes that.
std::optional<GaussianScore::Logs> GaussianScore::logs_of_determined_child(double pivot,
                                                                           Scratch& room) const {
    const double first = SetDeterminant::worth(1, tolerance_);
    const double own = 1.0 + room.child_squares;
    if (pivot > 0.0 && room.parent_share.is_at_least(clear_share / pivot)) {
        return Logs{std::log(own) + first, std::log(pivot)};
    }
    if (!(pivot <= rounding)) return std::nullopt;
    const std::size_t k = room.child_coefficients.size();
    room.coefficients.resize(k);
    room.parent_share.regress({room.row.data(), k}, room.coefficients);
    const double other = 1.0 + sum_of_products(room.coefficients, room.coefficients);
    const double shared = sum_of_products(room.coefficients, room.child_coefficients);
    const double both =
        std::log(own * other - shared * shared) + SetDeterminant::worth(2, tolerance_);
    const double inside = std::log(other) + first;
    return Logs{both - inside, inside};
}

/// The parents do not determine the child, but the candidate depends on both.
std::optional<GaussianScore::Logs> GaussianScore::logs_of_free_child(double pivot, const Base& base,
                                                                     Scratch& room) const {
    const double rest = pivot - room.row.back() * room.row.back();
    if (!room.share.is_at_least(sound_share) || !(rest <= rounding)) return std::nullopt;
    room.coefficients.resize(room.row.size());
    room.share.regress(room.row, room.coefficients);
    const double dependence =
        std::log1p(sum_of_products(room.coefficients, room.coefficients)) +
        SetDeterminant::worth(1, tolerance_);
    if (pivot <= rounding) return Logs{std::log(base.variance), dependence};
    if (!room.share.is_at_least(clear_share / pivot)) return std::nullopt;
    return Logs{std::log(base.variance) + dependence - std::log(pivot), std::log(pivot)};
}

/// Scores the parents without each one where some column is determined by the others.
void GaussianScore::reduce_dependent(Variable child, Variables parents, std::size_t first,
                                     std::span<double> out, Watch& watch) const {
    const std::size_t k = parents.size();
    Scratch& room = scratch_for(k);
    const Base base = score_base(child, parents, room);
    compute_share(base, k, room);
    std::vector<std::size_t> rest;
    const bool is_determined = know_child(base, k, room);
    for (std::size_t i = 0; i < out.size(); ++i) {
        // Without a parent, as much is left of a child that all determine as its coefficient times
        // what the others leave of that parent.
        double left = 0.0;
        if (is_determined) {
            const double coefficient = room.child_coefficients[first + i];
            left = coefficient * coefficient * room.parent_share.share(first + i);
        }
        if (left > 0.0 && room.parent_share.is_at_least(clear_share / left)) {
            out[i] = score_logs(child, k - 1, {std::log(left), 0.0}, left);
        } else {
            rest.push_back(i);
        }
    }
    for (const std::size_t i : rest) {
        std::vector<Variable> fewer{parents.begin(), parents.end()};
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(first + i));
        extensions(child, fewer, {}, out.subspan(i, 1), watch);
    }
}

double GaussianScore::score_logs(Variable child, std::size_t k, const Logs& logs,
                                 double variance) const {
    return weights_.constant[k] -
           weights_.log_variance[k] * (logs.variance + log_scale_[index(child)]) -
           weights_.log_determinant[k] * logs.determinant - squares_[index(child)] * variance;
}

/// Scores any family by the determinants of its sets.
double GaussianScore::score_sets(Variable child, Variables parents, double variance,
                                 Scratch& room) const {
    SetDeterminant determinant{correlation_, tolerance_};
    auto watch = Watch::unlimited();
    double scales = 0.0;
    for (const Variable parent : parents) scales += log_scale_[index(parent)];
    const double inside = determinant.log_of(parents, watch);
    room.columns.assign(parents.begin(), parents.end());
    room.columns.push_back(child);
    const double all = determinant.log_of(room.columns, watch);
    return score_logs(child, parents.size(), {all - inside, inside + scales}, variance);
}

}  // namespace isthmus

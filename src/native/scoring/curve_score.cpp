#include "scoring/curve_score.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

namespace isthmus {

namespace {

/// The logarithm of the determinant of a small symmetric matrix, whose pivots have a lower limit.
double log_determinant(std::vector<double>& m, std::size_t size, double tolerance) {
    double sum = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
        const double pivot = std::max(m[k * size + k], tolerance);
        sum += std::log(pivot);
        for (std::size_t i = k + 1; i < size; ++i) {
            const double factor = m[i * size + k] / pivot;
            for (std::size_t j = k + 1; j < size; ++j) m[i * size + j] -= factor * m[k * size + j];
        }
    }
    return sum;
}

}  // namespace

/// The regression of one family, from lines of all parents on.
class CurveScore::Regression {
public:
    Regression(const CurveScore& score, Variable child, Variables parents)
        : score_{score}, child_{child}, parents_{parents.begin(), parents.end()} {
        std::ranges::sort(parents_);  // so that rounding does not depend on the order of a search
        const auto& columns = score.columns_;
        std::vector<Variable> all;
        for (const Variable parent : parents_) {
            const auto p = index(parent);
            const bool curved = score.allowed_.row(p)[index(child)] != 0;
            const Variable last = curved ? columns.starts[p + 1] : columns.starts[p] + columns.own[p];
            spans_.push_back({all.size(), all.size() + index(columns.own[p])});
            for (Variable c = columns.starts[p]; c < last; ++c) all.push_back(c);
        }
        own_ = {all.size(), all.size() + index(columns.own[index(child)])};
        const Variable start = columns.starts[index(child)];
        for (Variable c = 0; c < columns.own[index(child)]; ++c) all.push_back(start + c);
        left_.emplace(score.correlation_, all);
        degree_.assign(parents_.size(), 0);
        for (const Span& span : spans_) explain(span);
        value_ = value(log_left({0, 0}), count_);
    }

    /// Adds functions while some pay; of `straight` none.
    void grow(Variable straight = -1) {
        while (add_best(straight)) {}
    }

    [[nodiscard]] double value() const { return value_; }
    [[nodiscard]] const std::vector<Variable>& parents() const { return parents_; }
    [[nodiscard]] const std::vector<Variable>& degrees() const { return degree_; }

private:
    struct Span {
        std::size_t first;
        std::size_t last;
    };

    /// What is left of a symmetric matrix after some of its columns have explained the others.
    class Residuals {
    public:
        Residuals(const Correlations& whole, const std::vector<Variable>& columns)
            : size_{columns.size()}, values_(size_ * size_) {
            for (std::size_t i = 0; i < size_; ++i) {
                const auto row = whole.row(index(columns[i]));
                for (std::size_t j = 0; j < size_; ++j) values_[i * size_ + j] = row[index(columns[j])];
            }
        }

        [[nodiscard]] double at(std::size_t i, std::size_t j) const { return values_[i * size_ + j]; }

        /// Takes a column out of all later ones, unless others determine it.
        void explain_by(std::size_t column, double tolerance) {
            const double pivot = at(column, column);
            if (!(pivot > tolerance)) return;
            const double* const row = values_.data() + column * size_;
            factors_.assign(row, row + size_);
            for (std::size_t i = 0; i < size_; ++i) {
                const double factor = factors_[i] / pivot;
                if (factor == 0.0) continue;
                double* const target = values_.data() + i * size_;
                for (std::size_t j = 0; j < size_; ++j) target[j] -= factor * factors_[j];
            }
        }

    private:
        std::size_t size_;
        std::vector<double> values_;
        std::vector<double> factors_;
    };

    bool add_best(Variable straight) {
        double best = value_ + least_gain;
        std::size_t parent = 0;
        Variable degree = 0;
        for (std::size_t q = 0; q < parents_.size(); ++q) {
            if (parents_[q] == straight || !may_bend(q)) continue;
            for (Variable k = degree_[q] + 1; k <= most_degree(q); ++k) {
                const Span added = functions(q, k);
                const double found = value(log_left(added), count_ + added.last - added.first);
                if (found > best) {
                    best = found;
                    parent = q;
                    degree = k;
                }
            }
        }
        if (degree == 0) return false;
        explain(functions(parent, degree));
        degree_[parent] = degree;
        value_ = best;
        return true;
    }

    [[nodiscard]] bool may_bend(std::size_t q) const {
        return score_.allowed_.row(index(parents_[q]))[index(child_)] != 0;
    }
    [[nodiscard]] Variable most_degree(std::size_t q) const {
        const auto row = score_.columns_.degrees.row(index(parents_[q]));
        return static_cast<Variable>(std::ranges::count_if(row, [](Variable k) { return k > 0; }));
    }
    /// The functions that degree `k` adds to those that are there.
    [[nodiscard]] Span functions(std::size_t q, Variable k) const {
        const auto row = score_.columns_.degrees.row(index(parents_[q]));
        const std::size_t before = degree_[q] == 0 ? 0 : index(row[index(degree_[q] - 1)]);
        return {spans_[q].last + before, spans_[q].last + index(row[index(k - 1)])};
    }

    void explain(Span span) {
        for (std::size_t c = span.first; c < span.last; ++c) left_->explain_by(c, score_.tolerance_);
        count_ += span.last - span.first;
    }

    /// What is left of the child, less what some more columns explain.
    [[nodiscard]] double log_left(Span added) {
        const std::size_t width = own_.last - own_.first;
        const std::size_t more = added.last - added.first;
        block_.resize(more * (more + width));
        const auto at = [&](std::size_t i, std::size_t j) -> double& {
            return block_[i * (more + width) + j];
        };
        for (std::size_t i = 0; i < more; ++i) {
            for (std::size_t j = 0; j < more; ++j) {
                at(i, j) = left_->at(added.first + i, added.first + j);
            }
            for (std::size_t j = 0; j < width; ++j) {
                at(i, more + j) = left_->at(added.first + i, own_.first + j);
            }
        }
        rest_.resize(width * width);
        for (std::size_t i = 0; i < width; ++i) {
            for (std::size_t j = 0; j < width; ++j) {
                rest_[i * width + j] = left_->at(own_.first + i, own_.first + j);
            }
        }
        for (std::size_t k = 0; k < more; ++k) {
            const double pivot = at(k, k);
            if (!(pivot > score_.tolerance_)) continue;
            for (std::size_t i = k + 1; i < more; ++i) {
                const double factor = at(k, i) / pivot;
                for (std::size_t j = i; j < more + width; ++j) at(i, j) -= factor * at(k, j);
            }
            for (std::size_t i = 0; i < width; ++i) {
                const double factor = at(k, more + i) / pivot;
                for (std::size_t j = 0; j < width; ++j) {
                    rest_[i * width + j] -= factor * at(k, more + j);
                }
            }
        }
        return log_determinant(rest_, width, score_.tolerance_);
    }

    [[nodiscard]] double value(double log_left, std::size_t columns) const {
        return score_.base_[index(child_)] - score_.half_n_ * log_left -
               score_.price(child_, parents_, columns);
    }

    /// Gains below this are rounding.
    static constexpr double least_gain = 1e-9;

    const CurveScore& score_;
    Variable child_;
    std::vector<Variable> parents_;
    std::vector<Span> spans_;  // the own columns of each parent
    Span own_{};               // those of the child
    std::optional<Residuals> left_;
    std::vector<Variable> degree_;
    std::size_t count_ = 0;
    double value_ = 0.0;
    std::vector<double> block_;
    std::vector<double> rest_;
};

CurveScore::CurveScore(Matrix<double> correlation, CurveColumns columns, std::vector<double> base,
                       CurvePrices prices, Matrix<std::uint8_t> allowed, double half_n,
                       double tolerance)
    : correlation_{std::move(correlation)},
      columns_{std::move(columns)},
      base_{std::move(base)},
      prices_{std::move(prices)},
      allowed_{std::move(allowed)},
      half_n_{half_n},
      tolerance_{tolerance} {
    const std::size_t d = base_.size();
    const auto width = static_cast<Variable>(correlation_.columns());
    if (columns_.starts.size() != d + 1 || columns_.starts.front() != 0 ||
        columns_.starts.back() != width || !std::ranges::is_sorted(columns_.starts)) {
        throw std::invalid_argument{"starts must ascend from 0 to the number of columns"};
    }
    if (columns_.own.size() != d || columns_.degrees.rows() != (columns_.degrees.columns() ? d : 0)) {
        throw std::invalid_argument{"own columns and degrees are needed for each variable"};
    }
    for (std::size_t v = 0; v < d; ++v) {
        const Variable all = columns_.starts[v + 1] - columns_.starts[v];
        if (columns_.own[v] < 0 || columns_.own[v] > all) {
            throw std::invalid_argument{"a variable has more own columns than columns"};
        }
        const Variable functions = all - columns_.own[v];
        if (columns_.degrees.columns() == 0) continue;
        Variable before = 0;
        bool ended = false;
        for (const Variable count : columns_.degrees.row(v)) {
            if (count == 0) ended = true;
            if (count < 0 || count > functions || (count > 0 && (ended || count <= before))) {
                throw std::invalid_argument{"degrees must ascend to at most the functions there are"};
            }
            if (count > 0) before = count;
        }
    }
    if (prices_.parents.size() != d + 1 || prices_.columns.size() < index(width) + 1) {
        throw std::invalid_argument{"a price is needed for each number of parents and of columns"};
    }
    if (allowed_.columns() != d || allowed_.rows() != d) {
        throw std::invalid_argument{"allowed must have a row and a column per variable"};
    }
    if (!(tolerance_ > 0.0)) throw std::invalid_argument{"the tolerance must be positive"};
}

void CurveScore::extensions(Variable child, Variables parents, Variables candidates,
                            std::span<double> out, Watch& watch) const {
    BatchSteps steps{paused_, 0, child, parents, candidates, out};
    std::vector<Variable> family{parents.begin(), parents.end()};
    for (std::size_t j = 0; j < out.size(); ++j) {
        if (!steps.next()) continue;
        if (j == 1) family.push_back(0);
        if (j > 0) family.resize(parents.size() + 1);
        if (j > 0) family.back() = candidates[j - 1];
        Regression regression{*this, child, family};
        regression.grow();
        out[j] = regression.value();
        steps.poll(watch);
    }
}

void CurveScore::reductions(Variable child, Variables parents, std::size_t first,
                            std::span<double> out, Watch& watch) const {
    reduce_one_by_one(*this, child, parents, first, out, watch);
}

std::vector<Variable> CurveScore::degrees(Variable child, Variables parents) const {
    Regression regression{*this, child, parents};
    regression.grow();
    std::vector<Variable> found;
    for (const Variable parent : parents) {
        const auto place = std::ranges::find(regression.parents(), parent);
        found.push_back(
            regression.degrees()[static_cast<std::size_t>(place - regression.parents().begin())]);
    }
    return found;
}

double CurveScore::without_functions(Variable child, Variables parents, Variable straight) const {
    Regression regression{*this, child, parents};
    regression.grow(straight);
    return regression.value();
}

double CurveScore::price(Variable child, Variables parents, std::size_t columns) const {
    const auto single = [this](Variable v) { return columns_.own[index(v)] == 1; };
    const std::size_t k = parents.size();
    if (single(child) && std::ranges::all_of(parents, single)) {
        return prices_.parents[k] + prices_.columns[columns] - prices_.columns[k];
    }
    const auto coefficients =
        static_cast<double>(columns) * static_cast<double>(columns_.own[index(child)]);
    return prices_.parents[k] + prices_.coefficient * (coefficients - static_cast<double>(k));
}

}  // namespace isthmus

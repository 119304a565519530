#include "scoring/incomplete_score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/checked.hpp"
#include "scoring/discrete_room.hpp"

namespace isthmus {

namespace {

// Numbers of configurations beyond this are renumbered at once; a product with the levels of one
// more variable fits 64 bits.
constexpr std::size_t most_numbers = std::size_t{1} << 40;

// Tables of more cells than this, and than twice the rows, are counted by renumbered keys.
constexpr std::size_t least_table = std::size_t{1} << 12;

// Rows between two looks for signals: less than a millisecond.
constexpr std::size_t rows_between_polls = std::size_t{1} << 18;

double log_of(std::int64_t count) { return std::log(static_cast<double>(count)); }

}  // namespace

/// The rows that are complete for a child and its parents.
struct IncompleteScore::Family {
    Family(std::size_t most_rows, Variable child_, Variables parents_)
        : child{child_}, parents{parents_}, numbers{most_rows} {}

    Variable child;
    Variables parents;
    std::vector<std::uint32_t> rows;
    std::vector<std::int64_t> configuration;  // of the parents, for each of these rows
    std::size_t numbered = 1;                 // numbers of configurations there may be
    double configurations = 1.0;              // product of the parents' levels, seen or not
    double marginal = 0.0;                    // mean log-likelihood of the child by itself
    Renumbering numbers;
    std::vector<std::int64_t> keys, cells, table, sums;
};

IncompleteScore::IncompleteScore(Matrix<std::uint16_t> codes, std::vector<std::int64_t> weights,
                                 std::vector<std::int64_t> cardinalities, double penalty,
                                 Matrix<double> prices)
    : codes_{std::move(codes)},
      weights_{std::move(weights)},
      cardinalities_{std::move(cardinalities)},
      penalty_{penalty},
      prices_{std::move(prices)},
      total_{weights_.empty() ? static_cast<std::int64_t>(codes_.columns())
                              : std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0})} {
    if (codes_.columns() >= std::size_t{1} << 30) {
        throw std::invalid_argument{
            "A score takes fewer than 2**30 different rows: summarise equal rows first."};
    }
    if (!std::isfinite(penalty_)) {
        throw std::invalid_argument{"The penalty per free parameter must be a finite number."};
    }
    if (prices_.rows() != size() || prices_.columns() != size()) {
        throw std::invalid_argument{"There must be one price for each child and parent."};
    }
}

IncompleteScore::Family IncompleteScore::begin(Variable child, Variables parents,
                                               Watch& watch) const {
    Family family{codes_.columns(), child, parents};
    const std::uint16_t* const own = column(child);
    for (std::size_t i = 0; i < codes_.columns(); ++i) {
        if (own[i] < levels(child)) family.rows.push_back(static_cast<std::uint32_t>(i));
    }
    family.configuration.assign(family.rows.size(), 0);
    std::vector<std::int64_t> counts(levels(child), 0);
    std::int64_t seen = 0;
    for (const std::uint32_t row : family.rows) {
        counts[own[row]] += weight(row);
        seen += weight(row);
    }
    for (const std::int64_t count : counts) {
        if (count == 0) continue;
        family.marginal +=
            static_cast<double>(count) * (log_of(count) - log_of(seen)) / static_cast<double>(seen);
    }
    for (const Variable parent : parents) {
        const std::size_t radix = levels(parent);
        if (family.numbered * radix > most_numbers) {
            family.numbered = family.numbers.renumber(family.configuration);
        }
        const std::uint16_t* const codes = column(parent);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < family.rows.size(); ++i) {
            const std::uint16_t code = codes[family.rows[i]];
            if (code == radix) continue;
            family.rows[kept] = family.rows[i];
            family.configuration[kept++] =
                family.configuration[i] * static_cast<std::int64_t>(radix) + code;
        }
        family.rows.resize(kept);
        family.configuration.resize(kept);
        family.numbered *= radix;
        family.configurations *= static_cast<double>(radix);
        watch.poll_signals();
    }
    if (family.numbered > std::max(least_table, family.rows.size())) {
        family.numbered = family.numbers.renumber(family.configuration);
    }
    return family;
}

double IncompleteScore::value(Family& family, Variable candidate, Watch& watch) const {
    const std::size_t r = levels(family.child);
    const std::size_t extra = candidate < 0 ? 1 : levels(candidate);
    const std::uint16_t* const own = column(family.child);
    const std::uint16_t* const added = candidate < 0 ? nullptr : column(candidate);
    // The configuration and the cell of each row that is complete for the candidate, too.
    family.keys.clear();
    family.cells.clear();
    std::vector<std::int64_t> weights;
    std::vector<std::int64_t> marginal(r, 0);
    std::int64_t complete = 0;
    for (std::size_t i = 0; i < family.rows.size(); ++i) {
        const std::size_t row = family.rows[i];
        const std::size_t code = added == nullptr ? 0 : added[row];
        if (code == extra) continue;
        family.keys.push_back(family.configuration[i] * static_cast<std::int64_t>(extra) +
                              static_cast<std::int64_t>(code));
        family.cells.push_back(own[row]);
        marginal[own[row]] += weight(row);
        if (!weights_.empty()) weights.push_back(weights_[row]);
        complete += weight(row);
        if (i % rows_between_polls == rows_between_polls - 1) watch.poll_signals();
    }
    if (complete == 0) return -std::numeric_limits<double>::infinity();
    std::size_t numbered = saturated_product(family.numbered, extra);
    if (numbered > std::max(least_table, 2 * family.keys.size())) {
        numbered = family.numbers.renumber(family.keys);
    }
    family.sums.assign(numbered, 0);
    for (std::size_t i = 0; i < family.keys.size(); ++i) {
        const std::int64_t count = weights.empty() ? 1 : weights[i];
        family.sums[static_cast<std::size_t>(family.keys[i])] += count;
        family.cells[i] += family.keys[i] * static_cast<std::int64_t>(r);
    }
    watch.poll_signals();
    std::size_t held = saturated_product(numbered, r);
    const bool dense = held <= std::max(least_table, 4 * family.keys.size());
    // The configuration of a cell is lost when cells are renumbered, so it is taken down.
    std::vector<std::int64_t> levels_of;
    if (!dense) {
        for (const std::int64_t cell : family.cells) {
            levels_of.push_back(cell % static_cast<std::int64_t>(r));
        }
        held = family.numbers.renumber(family.cells);
    }
    std::vector<std::pair<std::int64_t, std::size_t>> owner;
    if (!dense) owner.resize(held);
    family.table.assign(held, 0);
    for (std::size_t i = 0; i < family.cells.size(); ++i) {
        const auto cell = static_cast<std::size_t>(family.cells[i]);
        family.table[cell] += weights.empty() ? 1 : weights[i];
        if (!dense) owner[cell] = {family.keys[i], static_cast<std::size_t>(levels_of[i])};
    }
    watch.poll_signals();
    std::vector<std::pair<double, double>> gains;  // of each cell that occurs: count and gain
    double sum = 0.0;
    for (std::size_t cell = 0; cell < held; ++cell) {
        const std::int64_t count = family.table[cell];
        if (count == 0) continue;
        const std::size_t at = dense ? cell / r : static_cast<std::size_t>(owner[cell].first);
        const std::size_t level = dense ? cell % r : owner[cell].second;
        const double each = log_of(count) - log_of(family.sums[at]) -
                            (log_of(marginal[level]) - log_of(complete));
        gains.emplace_back(static_cast<double>(count), each);
        sum += static_cast<double>(count) * each;
    }
    const double mean = sum / static_cast<double>(complete);
    double squares = 0.0;
    for (const auto& [count, gain] : gains) squares += count * (gain - mean) * (gain - mean);
    return averaged(family, candidate, mean, squares / static_cast<double>(complete), complete);
}

double IncompleteScore::averaged(const Family& family, Variable candidate, double mean,
                                 double variance, std::int64_t complete) const {
    const auto n = static_cast<double>(total_);
    const auto m = static_cast<double>(complete);
    const auto prices = prices_.row(static_cast<std::size_t>(family.child));
    double price = 0.0;
    for (const Variable parent : family.parents) price += prices[static_cast<std::size_t>(parent)];
    double q = family.configurations;
    if (candidate >= 0) {
        price += prices[static_cast<std::size_t>(candidate)];
        q *= static_cast<double>(levels(candidate));
    }
    const double r = static_cast<double>(levels(family.child));
    return n * (mean + family.marginal) - penalty_ * (r - 1.0) * (1.0 + (q - 1.0) * n / m) -
           std::sqrt(variance) * price;
}

void IncompleteScore::extensions(Variable child, Variables parents, Variables candidates,
                                 std::span<double> out, Watch& watch) const {
    BatchSteps steps{paused_, 0, child, parents, candidates, out};
    Family family = begin(child, parents, watch);
    if (steps.next()) {
        out[0] = value(family, -1, watch);
        if (!candidates.empty()) steps.poll(watch);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!steps.next()) continue;
        out[1 + i] = value(family, candidates[i], watch);
        if (i + 1 < candidates.size()) steps.poll(watch);
    }
}

void IncompleteScore::reductions(Variable child, Variables parents, std::size_t first,
                                 std::span<double> out, Watch& watch) const {
    reduce_one_by_one(*this, child, parents, first, out, watch);
}

}  // namespace isthmus

#include "scoring/incomplete_score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/checked.hpp"
#include "scoring/discrete_room.hpp"

namespace isthmus {

namespace {

// Numbers of configurations beyond this are renumbered at once; a product with the levels of one
// more variable fits 64 bits.
constexpr std::size_t largest_table = std::size_t{1} << 40;

// Tables of more cells than this, and than twice the rows, are counted by renumbered keys.
constexpr std::size_t least_table = std::size_t{1} << 12;

// Rows between two looks for signals: less than a millisecond.
constexpr std::size_t rows_between_polls = std::size_t{1} << 18;

// The sum of count * log(count).
double sum_of_logs(std::span<const std::int64_t> counts) {
    double sum = 0.0;
    for (const std::int64_t count : counts) {
        if (count > 0) sum += static_cast<double>(count) * std::log(static_cast<double>(count));
    }
    return sum;
}

}  // namespace

/// The rows that are complete for some variables.
struct IncompleteScore::Group {
    Group(std::size_t most_rows, std::vector<Variable> members_)
        : members{std::move(members_)}, numbers{most_rows} {}

    std::vector<Variable> members;
    std::vector<std::uint32_t> rows;
    std::vector<std::int64_t> configuration;  // of the members, for each of these rows
    std::size_t numbered = 1;                 // numbers of configurations there may be
    double configurations = 1.0;              // product of the members' levels, seen or not
    double separate = 0.0;                    // free parameters of the members one by one
    Renumbering numbers;
    std::vector<std::uint32_t> chosen;  // rows that have a value of the candidate, too
    std::vector<std::int64_t> keys, table;
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

IncompleteScore::Group IncompleteScore::begin(std::vector<Variable> members, Watch& watch) const {
    Group group{codes_.columns(), std::move(members)};
    group.rows.resize(codes_.columns());
    std::iota(group.rows.begin(), group.rows.end(), std::uint32_t{0});
    group.configuration.assign(group.rows.size(), 0);
    for (const Variable member : group.members) {
        const std::size_t radix = levels(member);
        if (group.numbered * radix > largest_table) {
            group.numbered = group.numbers.renumber(group.configuration);
        }
        const std::uint16_t* const codes = column(member);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < group.rows.size(); ++i) {
            const std::uint16_t code = codes[group.rows[i]];
            if (code == radix) continue;
            group.rows[kept] = group.rows[i];
            group.configuration[kept++] =
                group.configuration[i] * static_cast<std::int64_t>(radix) + code;
        }
        group.rows.resize(kept);
        group.configuration.resize(kept);
        group.numbered *= radix;
        group.configurations *= static_cast<double>(radix);
        group.separate += static_cast<double>(radix) - 1.0;
        watch.poll_signals();
    }
    if (group.numbered > std::max(least_table, group.rows.size())) {
        group.numbered = group.numbers.renumber(group.configuration);
    }
    return group;
}

double IncompleteScore::dependence(Group& group, Variable candidate, Watch& watch) const {
    const std::size_t extra = candidate < 0 ? 1 : levels(candidate);
    const std::uint16_t* const added = candidate < 0 ? nullptr : column(candidate);
    group.keys.clear();
    group.chosen.clear();
    std::int64_t complete = 0;
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
        const std::uint32_t row = group.rows[i];
        const std::size_t code = added == nullptr ? 0 : added[row];
        if (code == extra) continue;
        group.keys.push_back(group.configuration[i] * static_cast<std::int64_t>(extra) +
                             static_cast<std::int64_t>(code));
        group.chosen.push_back(row);
        complete += weight(row);
        if (i % rows_between_polls == rows_between_polls - 1) watch.poll_signals();
    }
    if (complete == 0) return -std::numeric_limits<double>::infinity();
    std::vector<Variable> members = group.members;
    if (candidate >= 0) members.push_back(candidate);
    if (members.size() < 2) return 0.0;
    std::size_t numbered = saturated_product(group.numbered, extra);
    if (numbered > std::max(least_table, 2 * group.keys.size())) {
        numbered = group.numbers.renumber(group.keys);
    }
    group.table.assign(numbered, 0);
    for (std::size_t i = 0; i < group.keys.size(); ++i) {
        group.table[static_cast<std::size_t>(group.keys[i])] += weight(group.chosen[i]);
    }
    watch.poll_signals();
    const auto n = static_cast<double>(total_);
    const auto m = static_cast<double>(complete);
    double information =
        sum_of_logs(group.table) + (static_cast<double>(members.size()) - 1.0) * m * std::log(m);
    for (const Variable member : members) {
        const std::uint16_t* const codes = column(member);
        group.table.assign(levels(member), 0);
        for (const std::uint32_t row : group.chosen) group.table[codes[row]] += weight(row);
        information -= sum_of_logs(group.table);
        watch.poll_signals();
    }
    const auto width = static_cast<double>(extra);
    const double free = group.configurations * width - 1.0 - (group.separate + width - 1.0);
    return n / m * (information - penalty_ * free);
}

double IncompleteScore::alone(Variable child) const {
    const std::uint16_t* const own = column(child);
    std::vector<std::int64_t> counts(levels(child) + 1, 0);
    for (std::size_t i = 0; i < codes_.columns(); ++i) counts[own[i]] += weight(i);
    counts.pop_back();  // missing values
    const auto seen =
        static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    if (seen == 0.0) return -std::numeric_limits<double>::infinity();
    const double mean = sum_of_logs(counts) / seen - std::log(seen);
    return static_cast<double>(total_) * mean -
           penalty_ * (static_cast<double>(levels(child)) - 1.0);
}

void IncompleteScore::extensions(Variable child, Variables parents, Variables candidates,
                                 std::span<double> out, Watch& watch) const {
    BatchSteps steps{paused_, 0, child, parents, candidates, out};
    std::vector<Variable> members{parents.begin(), parents.end()};
    Group without = begin(members, watch);
    members.push_back(child);
    Group family = begin(std::move(members), watch);
    const auto prices = prices_.row(static_cast<std::size_t>(child));
    double base = alone(child);
    for (const Variable parent : parents) base -= prices[static_cast<std::size_t>(parent)];
    const auto value = [&](Variable candidate) {
        const double all = dependence(family, candidate, watch);
        if (std::isinf(all)) return all;
        const double price = candidate < 0 ? 0.0 : prices[static_cast<std::size_t>(candidate)];
        return base - price + all - dependence(without, candidate, watch);
    };
    if (steps.next()) {
        out[0] = value(-1);
        if (!candidates.empty()) steps.poll(watch);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!steps.next()) continue;
        out[1 + i] = value(candidates[i]);
        if (i + 1 < candidates.size()) steps.poll(watch);
    }
}

void IncompleteScore::reductions(Variable child, Variables parents, std::size_t first,
                                 std::span<double> out, Watch& watch) const {
    reduce_one_by_one(*this, child, parents, first, out, watch);
}

}  // namespace isthmus

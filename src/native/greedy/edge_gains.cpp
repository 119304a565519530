#include "greedy/edge_gains.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/random.hpp"

namespace isthmus {

namespace {

constexpr double no_gain = -std::numeric_limits<double>::infinity();

/// Equivalent changes gain the same up to rounding.
constexpr double tie = 1e-7;

/// Room for rows that may come again: 64 MB.
constexpr std::size_t most_kept_values = std::size_t{1} << 23;

void insert_sorted(std::vector<Variable>& values, Variable value) {
    values.insert(std::ranges::lower_bound(values, value), value);
}

void erase_sorted(std::vector<Variable>& values, Variable value) {
    values.erase(std::ranges::lower_bound(values, value));
}

}  // namespace

/// The best change among those considered so far.
class EdgeGains::Best {
public:
    Best(const EdgeGains& gains, const Choice& choice)
        : gains_{gains},
          choice_{choice},
          margin_{choice.ties ? -tie : tie},
          change_{EdgeChange::Kind::add, -1, -1, choice.floor} {}

    /// Whether a change with this gain could be taken: a quick test before all others.
    [[nodiscard]] bool is_near(double gain) const { return gain > change_.gain + margin_; }

    /// Whether a change would be taken. `toggled` is the exclusive or of the edges it changes.
    [[nodiscard]] bool wants(double gain, std::uint64_t toggled) const {
        if (!is_near(gain)) return false;
        if (choice_.ties && gain <= change_.gain + tie && !wins_tie(toggled)) return false;
        return std::ranges::find(choice_.recent, gains_.key() ^ toggled) == choice_.recent.end();
    }
    void take(const EdgeChange& change, std::uint64_t toggled) {
        change_ = change;
        priority_ = priority_of(toggled);
    }
    [[nodiscard]] std::optional<EdgeChange> change() const {
        if (change_.child < 0) return std::nullopt;
        return change_;
    }

private:
    [[nodiscard]] std::uint64_t priority_of(std::uint64_t toggled) const {
        return mix(toggled ^ choice_.ties.value_or(0));
    }
    [[nodiscard]] bool wins_tie(std::uint64_t toggled) const {
        // The floor is no change: it cannot be tied with.
        return change_.child >= 0 && priority_of(toggled) > priority_;
    }

    const EdgeGains& gains_;
    const Choice& choice_;
    double margin_;
    EdgeChange change_;
    std::uint64_t priority_ = 0;
};

EdgeGains::EdgeGains(const LocalScore& score, const Rules& rules)
    : score_{score},
      rules_{rules},
      parents_(rules.size()),
      children_(rules.size()),
      edge_{rules.size(), rules.size()},
      gain_{rules.size(), rules.size(), no_gain},
      best_addition_(rules.size(), no_gain),
      local_(rules.size()),
      reach_{rules.size()},
      values_(rules.size() + 1) {
    if (score.size() != rules.size()) {
        throw std::invalid_argument{"the score and the rules differ in the number of variables"};
    }
    candidates_.reserve(rules.size());
    for (std::size_t child = 0; child < size(); ++child) {
        const auto v = static_cast<Variable>(child);
        for (const Variable parent : rules.required(v)) set_edge(parent, v, true);
    }
    if (!reach_.rebuild(parents_)) {
        throw std::invalid_argument{"the required edges form a cycle"};
    }
}

void EdgeGains::set_edge(Variable parent, Variable child, bool present) {
    edge_.row(index(child))[index(parent)] = present ? 1 : 0;
    key_ ^= mix(edge_number(child, parent));
    if (present) {
        insert_sorted(parents_[index(child)], parent);
        insert_sorted(children_[index(parent)], child);
    } else {
        erase_sorted(parents_[index(child)], parent);
        erase_sorted(children_[index(parent)], child);
    }
}

void EdgeGains::apply(const EdgeChange& change) {
    if (change.kind == EdgeChange::Kind::add) {
        set_edge(change.parent, change.child, true);
        if (!reach_is_stale_) reach_.add(change.parent, change.child);
        return;
    }
    set_edge(change.parent, change.child, false);
    if (change.kind == EdgeChange::Kind::reverse) set_edge(change.child, change.parent, true);
    reach_is_stale_ = true;
}

void EdgeGains::undo(const EdgeChange& change) {
    if (change.kind == EdgeChange::Kind::reverse) set_edge(change.child, change.parent, false);
    set_edge(change.parent, change.child, change.kind != EdgeChange::Kind::add);
    reach_is_stale_ = true;
}

void EdgeGains::refresh(Variable child, Watch& watch) {
    const auto& parents = parents_[index(child)];
    std::uint64_t key = mix(edge_number(child, child));
    for (const Variable parent : parents) key ^= mix(edge_number(child, parent));
    const Row* row = find_row(key, parents);
    if (row == nullptr) {
        if ((rows_.size() + 1) * size() > most_kept_values) {
            rows_.clear();
            row_values_ = {};
        }
        row = &rows_.insert_or_assign(key, compute_row(child, watch)).first->second;
    }
    std::ranges::copy(row->gain, gain_.row(index(child)).begin());
    best_addition_[index(child)] = row->best_addition;
    local_[index(child)] = row->local;
}

const EdgeGains::Row* EdgeGains::find_row(std::uint64_t key, Variables parents) const {
    const auto found = rows_.find(key);
    // Two sets of parents may have the same key, if hardly ever.
    if (found == rows_.end() || !std::ranges::equal(found->second.parents, parents)) return nullptr;
    return &found->second;
}

EdgeGains::Row EdgeGains::compute_row(Variable child, Watch& watch) {
    const auto& parents = parents_[index(child)];
    candidates_.clear();
    if (parents.size() < rules_.max_parents()) {
        for (std::size_t x = 0; x < size(); ++x) {
            const auto parent = static_cast<Variable>(x);
            if (parent != child && is_open(parent, child) && !has_edge(parent, child)) {
                candidates_.push_back(parent);
            }
        }
    }
    const std::span<double> added{values_.data(), candidates_.size() + 1};
    score_.extensions(child, parents, candidates_, added, watch);
    removed_.resize(parents.size());
    if (!parents.empty()) score_.reductions(child, parents, 0, removed_, watch);
    const double base = added[0];
    Row row{.parents = parents,
            .gain = row_values_.allocate(size()),
            .local = base,
            .best_addition = no_gain};
    std::ranges::fill(row.gain, no_gain);
    for (std::size_t j = 0; j < candidates_.size(); ++j) {
        const double gain = added[1 + j] - base;
        row.gain[index(candidates_[j])] = gain;
        row.best_addition = gain > row.best_addition ? gain : row.best_addition;
    }
    for (std::size_t i = 0; i < parents.size(); ++i) {
        row.gain[index(parents[i])] = removed_[i] - base;
    }
    return row;
}

bool EdgeGains::can_turn(Variable parent, Variable child) const {
    if (!is_open(child, parent) || rules_.is_required(parent, child)) return false;
    const auto& of_parent = parents_[index(parent)];
    const auto& of_child = parents_[index(child)];
    if (of_child.size() != of_parent.size() + 1) return false;
    return std::ranges::all_of(of_parent, [&](Variable x) { return has_edge(x, child); });
}

/// Whether `parent` reaches `child` other than by the edge between them.
bool EdgeGains::reaches_otherwise(Variable parent, Variable child) const {
    return std::ranges::any_of(children_[index(parent)], [&](Variable x) {
        return x != child && reach_.test(x, child);
    });
}

std::optional<EdgeChange> EdgeGains::best_change(const Choice& choice) {
    if (std::exchange(reach_is_stale_, false)) reach_.rebuild(parents_);
    Best best{*this, choice};
    consider_additions(best);
    consider_edges(best);
    return best.change();
}

void EdgeGains::consider_additions(Best& best) const {
    for (std::size_t c = 0; c < size(); ++c) {
        if (!best.is_near(best_addition_[c])) continue;
        const auto child = static_cast<Variable>(c);
        const auto row = gain_.row(c);
        const auto present = edge_.row(c);
        for (std::size_t p = 0; p < row.size(); ++p) {
            if (!best.is_near(row[p]) || present[p] != 0) continue;
            const auto parent = static_cast<Variable>(p);
            if (reach_.test(child, parent)) continue;
            const std::uint64_t toggled = mix(edge_number(child, parent));
            if (!best.wants(row[p], toggled)) continue;
            best.take({EdgeChange::Kind::add, child, parent, row[p]}, toggled);
        }
    }
}

void EdgeGains::consider_edges(Best& best) const {
    for (std::size_t c = 0; c < size(); ++c) {
        const auto child = static_cast<Variable>(c);
        for (const Variable parent : parents_[c]) {
            if (rules_.requires_any() && rules_.is_required(parent, child)) continue;
            const double removed = gain_.row(c)[index(parent)];
            const std::uint64_t without = mix(edge_number(child, parent));
            if (best.wants(removed, without)) {
                best.take({EdgeChange::Kind::remove, child, parent, removed}, without);
            }
            const double turned = removed + gain_.row(index(parent))[c];
            const std::uint64_t toggled = without ^ mix(edge_number(parent, child));
            if (best.is_near(turned) && is_open(child, parent) && best.wants(turned, toggled) &&
                !reaches_otherwise(parent, child)) {
                best.take({EdgeChange::Kind::reverse, child, parent, turned}, toggled);
            }
        }
    }
}

}  // namespace isthmus

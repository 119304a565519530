#include "greedy/hill_climb.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "core/sums.hpp"

namespace isthmus {

namespace {

/// By how much a graph must be better than the best one, relative to its score.
constexpr double tolerance = 1e-9;

/// So many edges are looked at between two changes, and turned round if they are covered. More
/// find better graphs and take longer; chosen on the networks of tests/kernels/test_hill_climb.py.
constexpr std::size_t turns = 20;

/// So many tenths of the edges are removed before another climb.
constexpr std::uint64_t removed_tenths = 3;

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

bool is_better(double score, double than) {
    return score > than + tolerance * std::max(1.0, std::abs(than));
}

void erase(std::vector<Variable>& values, Variable value) {
    values.erase(std::ranges::find(values, value));
}

}  // namespace

HillClimb::HillClimb(std::shared_ptr<const LocalScore> score, Rules rules, const Options& options)
    : score_{std::move(score)},
      rules_{std::move(rules)},
      options_{options},
      gains_{*score_, rules_},
      random_{options.seed.value_or(0)},
      is_stale_(gains_.size(), 1),
      remembered_{std::max<std::size_t>(options.tabu, 1)} {
    for (std::size_t v = gains_.size(); v > 0; --v) stale_.push_back(static_cast<Variable>(v - 1));
}

void HillClimb::start(const std::vector<std::vector<Variable>>& parents, Variable parent,
                      Variable child, std::size_t restarts, bool nearby) {
    // Edges are removed before any is added, so that there is never a cycle.
    for (const auto kind : {EdgeChange::Kind::remove, EdgeChange::Kind::add}) {
        const bool adding = kind == EdgeChange::Kind::add;
        for (std::size_t c = 0; c < gains_.size(); ++c) {
            const auto from = adding ? gains_.parents()[c] : parents[c];  // a copy: it changes
            for (const Variable p : adding ? parents[c] : std::vector{gains_.parents()[c]}) {
                if (std::ranges::binary_search(from, p)) continue;
                change_graph({kind, static_cast<Variable>(c), p, 0.0});
            }
        }
    }
    rules_.hold(parent, child);
    is_near_.assign(nearby ? gains_.size() : 0, 0);
    for (const auto& [from, to] : edges()) {
        const bool touches = from == parent || from == child || to == parent || to == child;
        if (nearby && touches) is_near_[index(from)] = is_near_[index(to)] = 1;
    }
    options_.restarts = restarts;
    random_ = SplitMix{options_.seed.value_or(0)};
    since_best_.clear();
    visited_ = idle_ = idle_climbs_ = changes_ = 0;
    climbs_ = 1;
    best_score_ = -std::numeric_limits<double>::infinity();
    stage_ = Stage::start;
}

bool HillClimb::step(Watch& watch) {
    run_slice([&] {
        while (stage_ != Stage::finished) {
            while (!stale_.empty()) {
                gains_.refresh(stale_.back(), watch);
                is_stale_[index(stale_.back())] = 0;
                stale_.pop_back();
                scored_ = std::min(scored_ + 1, gains_.size());
                watch.poll();
            }
            advance();
            watch.poll();
        }
    });
    return stage_ == Stage::finished;
}

/// Looks at what the last change brought, and makes the next one.
void HillClimb::advance() {
    switch (stage_) {
        case Stage::change:
            if (!judge()) return end_climb();
            if (options_.seed && turn_edges()) return;
            break;
        case Stage::start:
        case Stage::restart:
            current_score_ = pairwise_sum(gains_.local_scores());
            climb_score_ = current_score_;
            if (stage_ == Stage::start || is_better(current_score_, best_score_)) keep_best();
            break;
        case Stage::turn:
        case Stage::finished:
            break;
    }
    choose_change();
}

/// Compares the graph with the best ones. Returns whether the climb goes on.
bool HillClimb::judge() {
    ++idle_;
    if (is_better(current_score_, climb_score_)) {
        climb_score_ = current_score_;
        idle_ = 0;
    }
    if (is_better(current_score_, best_score_)) keep_best();
    return idle_ == 0 || idle_ < options_.patience;
}

void HillClimb::choose_change() {
    const std::size_t remembered = std::min(remembered_, visited_);
    const auto change = gains_.best_change(
        {.floor = options_.patience == 0 ? tolerance : minus_infinity,
         .ties = options_.seed ? std::optional{random_.next()} : std::nullopt,
         .recent = std::span{recent_}.first(remembered)});
    if (!change) return end_climb();
    const std::size_t place = visited_ % remembered_;
    if (place == recent_.size()) {
        recent_.push_back(gains_.key());
    } else {
        recent_[place] = gains_.key();
    }
    ++visited_;
    ++changes_;
    change_graph(*change);
    current_score_ += change->gain;
    stage_ = Stage::change;
}

/// Turns some covered edges round, unless that lowers the score. Returns whether any was found.
bool HillClimb::turn_edges() {
    const auto open = edges();
    bool turned = false;
    for (std::size_t i = 0; i < turns && !open.empty(); ++i) {
        const auto& [parent, child] = open[random_.below(open.size())];
        // The gain is known as long as neither node has been turned to.
        if (is_stale_[index(parent)] != 0 || is_stale_[index(child)] != 0) continue;
        if (!gains_.can_turn(parent, child)) continue;
        const double gain = gains_.turn_gain(parent, child);
        if (!(gain >= -tolerance * std::max(1.0, std::abs(current_score_)))) continue;
        change_graph({EdgeChange::Kind::reverse, child, parent, gain});
        current_score_ += gain;
        turned = true;
    }
    if (turned) stage_ = Stage::turn;
    return turned;
}

void HillClimb::end_climb() {
    if (!options_.seed || idle_climbs_ >= options_.restarts) {
        stage_ = Stage::finished;
        return;
    }
    ++idle_climbs_;
    ++climbs_;
    restart();
}

/// Goes back to the best graph and removes some of its edges.
void HillClimb::restart() {
    for (const EdgeChange& change : std::views::reverse(since_best_)) {
        gains_.undo(change);
        mark_stale(change);
    }
    since_best_.clear();
    for (const auto& [parent, child] : edges()) {
        if (!is_near_.empty() && (is_near_[index(parent)] & is_near_[index(child)]) == 0) continue;
        if (random_.below(10) >= removed_tenths || rules_.is_required(parent, child)) continue;
        change_graph({EdgeChange::Kind::remove, child, parent, 0.0});
    }
    visited_ = 0;
    idle_ = 0;
    stage_ = Stage::restart;
}

void HillClimb::keep_best() {
    best_score_ = current_score_;
    since_best_.clear();
    idle_climbs_ = 0;
}

std::vector<std::pair<Variable, Variable>> HillClimb::edges() const {
    std::vector<std::pair<Variable, Variable>> edges;
    for (std::size_t child = 0; child < gains_.size(); ++child) {
        for (const Variable parent : gains_.parents()[child]) {
            edges.emplace_back(parent, static_cast<Variable>(child));
        }
    }
    return edges;
}

void HillClimb::change_graph(const EdgeChange& change) {
    gains_.apply(change);
    mark_stale(change);
    since_best_.push_back(change);
}

void HillClimb::mark_stale(const EdgeChange& change) {
    // The child of the change is refreshed first.
    const auto mark = [&](Variable child) {
        if (std::exchange(is_stale_[index(child)], 1) == 0) stale_.push_back(child);
    };
    if (change.kind == EdgeChange::Kind::reverse) mark(change.parent);
    mark(change.child);
}

HillClimb::Best HillClimb::best(Watch& watch) const {
    Best best{.parents = gains_.parents(), .score = 0.0};
    for (const EdgeChange& change : std::views::reverse(since_best_)) {
        auto& own = best.parents[index(change.child)];
        if (change.kind == EdgeChange::Kind::add) {
            erase(own, change.parent);
            continue;
        }
        own.push_back(change.parent);
        if (change.kind == EdgeChange::Kind::reverse) {
            erase(best.parents[index(change.parent)], change.child);
        }
    }
    double value = 0.0;
    for (std::size_t v = 0; v < best.parents.size(); ++v) {
        std::ranges::sort(best.parents[v]);
        score_->extensions(static_cast<Variable>(v), best.parents[v], {}, {&value, 1}, watch);
        best.score += value;
    }
    return best;
}

}  // namespace isthmus

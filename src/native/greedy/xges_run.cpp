#include "greedy/xges_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace isthmus {

namespace {

// What a change must gain at least: below lies rounding, in absolute terms and as a share of the
// total.
constexpr double least_gain = 1e-6;
constexpr double least_share = 1e-12;

// Changes after which the gains are compared with the total of a member.
constexpr std::size_t changes_between_checks = 256;

constexpr std::size_t no_node = PathSearch::no_node;

constexpr const char* no_member =
    "a class has no member that obeys the rules; this is a bug, please report it";

std::uint64_t row_fingerprint(const MixedGraph& graph, std::size_t node) {
    std::uint64_t hash = mix(node);
    for (std::size_t w = 0; w < graph.words(); ++w) {
        hash = mix(hash ^ graph.parents.row(node)[w]);
        hash = mix(hash ^ graph.neighbours.row(node)[w]);
    }
    return hash;
}

std::uint64_t graph_fingerprint(const MixedGraph& graph, std::size_t nodes) {
    std::uint64_t hash = 0;
    for (std::size_t v = 0; v < nodes; ++v) hash ^= row_fingerprint(graph, v);
    return hash;
}

}  // namespace

XgesRun::XgesRun(std::shared_ptr<const LocalScore> score, ClassRules rules, bool extended)
    : score_{std::move(score)},
      rules_{std::move(rules)},
      extended_{extended},
      rows_{*score_, rules_},
      operators_{rules_, rows_},
      essential_{rules_},
      change_{rules_.size()},
      paths_{rules_.size()},
      first_{rules_.size()},
      state_{rules_.size()},
      saved_{rules_.size()},
      starts_(state_.graph.words()),
      nothing_(state_.graph.words()),
      found_(state_.graph.words()) {
    if (rules_.size() == 0) throw std::invalid_argument{"there are no variables"};
    if (rules_.size() != score_->size()) {
        throw std::invalid_argument{"the score and the rules are about different numbers of variables"};
    }
    for (const auto& [from, to] : rules_.required()) {
        if (rules_.never(from, to) || rules_.must(to, from)) {
            throw std::invalid_argument{"a required edge is forbidden, or required both ways"};
        }
        change_.orient(from, to);
        change_.adjacent.put(from, to);
        change_.adjacent.put(to, from);
    }
    if (essential_.make(change_) != EssentialGraphs::Outcome::made) {
        throw std::invalid_argument{"the required edges form a cycle"};
    }
    first_ = essential_.graph();
    state_.graph = first_;
    state_.fingerprint = graph_fingerprint(state_.graph, rules_.size());
}

bool XgesRun::step(Watch& watch) {
    run_slice([&] {
        while (stage_ != Stage::finished) advance(watch);
    });
    return finished();
}

void XgesRun::advance(Watch& watch) {
    switch (stage_) {
        case Stage::scoring: start(watch); break;
        case Stage::climbing:
            if (climb(watch) == End::restarted) break;
            if (extended_) {
                trials_.clear();
                std::ranges::fill(state_.stale_deletions, std::uint8_t{1});
                stage_ = Stage::listing;
            } else {
                stage_ = Stage::finished;
            }
            break;
        case Stage::listing: list_trials(watch); break;
        case Stage::planning: begin_trial(); break;
        case Stage::trying:
            if (climb(watch) != End::restarted) end_trial();
            break;
        case Stage::finished: break;
    }
}

void XgesRun::start(Watch& watch) {
    if (!essential_.find_member(state_.graph)) throw std::logic_error{no_member};
    while (first_scores_.size() < rules_.size()) {
        first_scores_.push_back(family_score(first_scores_.size(), watch).second);
        watch.poll();
    }
    state_.total = std::accumulate(first_scores_.begin(), first_scores_.end(), 0.0);
    set_tolerance(state_.total);
    visited_.insert(state_.fingerprint);
    stage_ = Stage::climbing;
}

void XgesRun::set_tolerance(double total) {
    const double share = least_share * std::abs(total);
    tolerance_ = share > least_gain && std::isfinite(share) ? share : least_gain;
    rows_.set_tolerance(tolerance_);
    operators_.set_tolerance(tolerance_);
}

XgesRun::End XgesRun::climb(Watch& watch) {
    constexpr OperatorKind kinds[] = {OperatorKind::deletion, OperatorKind::turn,
                                      OperatorKind::insertion};
    while (true) {
        if (!gains_add_up(watch)) {
            start_over(watch);
            return End::restarted;
        }
        if (state_.forced != no_node) {
            // Whatever comes of it, it is not forced again.
            const Change change = apply(OperatorKind::deletion, state_.forced, watch);
            state_.forced = no_node;
            if (change == Change::refused) return End::refused;
            watch.poll();
            continue;
        }
        renew(watch);
        bool tried = false;
        for (const OperatorKind kind : kinds) {
            const std::vector<double>& gain = state_.operators(kind).gain;
            std::size_t y = 0;
            for (std::size_t v = 1; v < gain.size(); ++v) {
                if (gain[v] > gain[y]) y = v;
            }
            if (!(gain[y] > tolerance_)) continue;
            if (kind == OperatorKind::deletion || operators_.age(y) == state_.stamp) {
                (void)apply(kind, y, watch);
            } else {
                // What was valid when it was found need not be now.
                state_.stale_moves[y] = 1;
            }
            tried = true;
            break;
        }
        if (!tried) return End::optimum;
        watch.poll();
    }
}

void XgesRun::renew(Watch& watch) {
    bool gains = false;
    for (std::size_t y = 0; y < rules_.size(); ++y) {
        if (state_.stale_deletions[y] != 0) {
            operators_.renew_deletions(state_, y, nullptr, watch);
        }
        gains = gains || state_.operators(OperatorKind::deletion).gain[y] > tolerance_;
    }
    if (gains) return;
    for (std::size_t y = 0; y < rules_.size(); ++y) {
        if (state_.stale_moves[y] == 0) continue;
        operators_.renew_moves(state_, y, watch);
        watch.poll();
    }
}

XgesRun::Change XgesRun::apply(OperatorKind kind, std::size_t y, Watch& watch) {
    const bool forced = state_.forced != no_node;
    const std::size_t x = state_.operators(kind).other[y];
    ClassOperators::write_change(state_, kind, y, change_);
    const auto outcome = essential_.make(change_);
    if (outcome == EssentialGraphs::Outcome::broken) {
        throw std::logic_error{"an operator led to no graph; this is a bug, please report it"};
    }
    bool refused = outcome == EssentialGraphs::Outcome::refused;
    double total = state_.total + state_.operators(kind).gain[y];
    if (guarded_ && !refused) {
        total = member_total(essential_.graph(), watch);
        refused = !forced && !(total > state_.total + tolerance_);
    }
    if (refused) {
        operators_.refuse(state_, kind, y);
        (kind == OperatorKind::deletion ? state_.stale_deletions : state_.stale_moves)[y] = 1;
        return Change::refused;
    }
    state_.total = total;
    ++state_.steps;
    state_.stamp = ++classes_;
    take_over(kind, x, y);
    if (!guarded_) {
        // Each change gains, so no class can come again, unless gains do not add up.
        came_again_ = !visited_.insert(state_.fingerprint).second;
        ++unchecked_;
    }
    return Change::made;
}

void XgesRun::take_over(OperatorKind kind, std::size_t x, std::size_t y) {
    const MixedGraph& fresh = essential_.graph();
    MixedGraph& graph = state_.graph;
    const std::size_t words = graph.words();
    std::ranges::fill(starts_, Word{0});
    for (std::size_t v = 0; v < rules_.size(); ++v) {
        bool changed = false;
        bool lost = false;
        for (std::size_t w = 0; w < words; ++w) {
            const Word before = graph.neighbours.row(v)[w] | graph.children.row(v)[w];
            const Word after = fresh.neighbours.row(v)[w] | fresh.children.row(v)[w];
            lost = lost || (before & ~after) != 0;
            changed = changed || graph.parents.row(v)[w] != fresh.parents.row(v)[w] ||
                      graph.children.row(v)[w] != fresh.children.row(v)[w] ||
                      graph.neighbours.row(v)[w] != fresh.neighbours.row(v)[w];
        }
        if (lost) put(starts_.data(), v);
        mark_near(kind, x, y, v, changed);
        if (!changed) continue;
        state_.fingerprint ^= row_fingerprint(graph, v) ^ row_fingerprint(fresh, v);
        // A turn of u -> v also counts what v loses.
        for (const MixedGraph* const side : {&std::as_const(graph), &fresh}) {
            for_each(side->parents.row(v), words,
                     [&](std::size_t u) { state_.stale_moves[u] = 1; });
        }
    }
    // What a path blocked may be free when the path has lost a step: when the target got to the
    // start of a step that is there no more. With rules, whatever is blocked may be free.
    const bool always = rules_.any() || guarded_;
    paths_.reach(graph, graph.parents, no_node, starts_.data(), nothing_.data(), found_.data());
    for (std::size_t v = 0; v < rules_.size(); ++v) {
        if (!always && !has(found_.data(), v)) continue;
        if (state_.blocked_deletions[v] != 0) state_.stale_deletions[v] = 1;
        if (state_.blocked_moves[v] != 0) state_.stale_moves[v] = 1;
    }
    graph = fresh;
}

void XgesRun::mark_near(OperatorKind kind, std::size_t x, std::size_t y, std::size_t v,
                        bool changed) {
    if (changed) {
        state_.stale_deletions[v] = state_.stale_moves[v] = 1;
        return;
    }
    // It matters to a target with the same edges as before which of its neighbours are adjacent to
    // each other, and to the x of its own operators.
    const BitMatrix& neighbours = state_.graph.neighbours;
    const bool one = neighbours.has(v, x);
    const bool two = neighbours.has(v, y);
    if (kind == OperatorKind::turn || !(one || two)) return;
    if (one && two) {
        state_.stale_deletions[v] = state_.stale_moves[v] = 1;
        return;
    }
    const std::size_t end = one ? y : x;
    // One edge more leaves fewer operators with this end: only the one kept may be lost.
    const bool matters =
        kind == OperatorKind::deletion
            ? !state_.graph.parents.has(v, end)
            : state_.operators(OperatorKind::turn).other[v] == end ||
                  state_.operators(OperatorKind::insertion).other[v] == end;
    if (matters) state_.stale_moves[v] = 1;
}

void XgesRun::list_trials(Watch& watch) {
    for (std::size_t y = 0; y < rules_.size(); ++y) {
        if (state_.stale_deletions[y] != 0) {
            operators_.renew_deletions(state_, y, &trials_, watch);
            watch.poll();
        }
    }
    waiting_.resize(trials_.size());
    std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
    // The least costly last: it is tried first.
    std::ranges::stable_sort(waiting_, {}, [this](std::size_t i) { return trials_[i].gain; });
    saved_ = state_;
    stage_ = Stage::planning;
}

void XgesRun::begin_trial() {
    const std::size_t words = state_.graph.words();
    while (!waiting_.empty()) {
        const Trial& trial = trials_[waiting_.back()];
        waiting_.pop_back();
        // A deletion that was tried in the same surroundings before need not be tried again.
        std::vector<Word> key{trial.x, trial.y};
        key.insert(key.end(), trial.chosen.begin(), trial.chosen.end());
        for (const BitMatrix* const layer :
             {&state_.graph.parents, &state_.graph.children, &state_.graph.neighbours}) {
            for (const std::size_t v : {trial.x, trial.y}) {
                key.insert(key.end(), layer->row(v), layer->row(v) + words);
            }
        }
        if (!tried_.insert(std::move(key)).second) continue;
        BestOperators& deletions = state_.operators(OperatorKind::deletion);
        deletions.gain[trial.y] = trial.gain;
        deletions.other[trial.y] = trial.x;
        std::ranges::copy(trial.chosen, deletions.chosen.row(trial.y));
        state_.forced = trial.y;
        state_.banned_one = trial.x;
        state_.banned_other = trial.y;
        visited_.clear();
        stage_ = Stage::trying;
        return;
    }
    stage_ = Stage::finished;
}

void XgesRun::end_trial() {
    visited_.clear();
    if (state_.total > saved_.total + tolerance_) {
        // The pair may be joined again.
        state_.stale_moves[state_.banned_one] = state_.stale_moves[state_.banned_other] = 1;
        state_.banned_one = state_.banned_other = no_node;
        visited_.insert(state_.fingerprint);
        stage_ = Stage::climbing;
    } else {
        state_ = saved_;
        stage_ = Stage::planning;
    }
}

bool XgesRun::gains_add_up(Watch& watch) {
    if (came_again_) return false;
    if (unchecked_ >= changes_between_checks) {
        const double total = member_total(state_.graph, watch);
        if (!(total > state_.total - static_cast<double>(unchecked_) * tolerance_)) return false;
        unchecked_ = 0;
    }
    return true;
}

void XgesRun::start_over(Watch& watch) {
    const double total = member_total(first_, watch);
    guarded_ = true;
    came_again_ = false;
    unchecked_ = 0;
    state_ = ClassState{rules_.size()};
    state_.graph = first_;
    state_.total = total;
    state_.stamp = ++classes_;
    saved_ = ClassState{rules_.size()};
    waiting_.clear();
    tried_.clear();
    stage_ = Stage::climbing;
}

double XgesRun::member_total(const MixedGraph& graph, Watch& watch) {
    if (!essential_.find_member(graph)) throw std::logic_error{no_member};
    double total = 0.0;
    for (std::size_t v = 0; v < rules_.size(); ++v) {
        total += rows_.score(v, essential_.member().row(v), watch);
    }
    return total;
}

double XgesRun::score() const { return std::max(state_.total, saved_.total); }

XgesRun::Best XgesRun::best(Watch& watch) {
    // While a deletion is tried, the class to go back to is the saved one.
    const bool saved = stage_ == Stage::trying && saved_.total >= state_.total;
    if (!essential_.find_member(saved ? saved_.graph : state_.graph)) {
        throw std::logic_error{no_member};
    }
    Best best{.parents = {}, .score = 0.0};
    for (std::size_t v = 0; v < rules_.size(); ++v) {
        auto [parents, value] = family_score(v, watch);
        best.parents.push_back(std::move(parents));
        best.score += value;
        watch.poll_signals();
    }
    return best;
}

std::pair<std::vector<Variable>, double> XgesRun::family_score(std::size_t v, Watch& watch) {
    std::vector<Variable> parents;
    for_each(essential_.member().row(v), essential_.member().words(),
             [&](std::size_t p) { parents.push_back(static_cast<Variable>(p)); });
    double value = 0.0;
    score_->extensions(static_cast<Variable>(v), parents, {}, {&value, 1}, watch);
    return {std::move(parents), value};
}

}  // namespace isthmus

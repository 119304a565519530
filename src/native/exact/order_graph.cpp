#include "exact/order_graph.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace isthmus {

OrderGraph::OrderGraph(ComponentProblem problem, std::span<const std::int64_t> groups,
                       Options options)
    : problem_{std::move(problem)}, patterns_{problem_, groups}, options_{options} {
    set_floor();
}

void OrderGraph::set_floor() {
    const double noise = 1e-10 * std::max(1.0, std::abs(options_.known));
    floor_ = options_.slack ? options_.known - *options_.slack - noise : options_.known + noise;
}

bool OrderGraph::step(Watch& watch) {
    run_slice([&] {
        patterns_.fill(watch);
        if (!begun_) begin();
        search(watch);
    });
    return done_;
}

void OrderGraph::begin() {
    begun_ = true;
    Successor first{.placed = 0, .value = 0.0, .key = 0.0, .last = -1};
    if (closing()) close_up(first.placed, first.value);
    first.key = first.value + patterns_.to_go(first.placed);
    if (!(first.key <= floor_)) see(first, no_state);
}

void OrderGraph::search(Watch& watch) {
    std::size_t since = 0;
    while (!done_) {
        if (heap_.empty()) {
            done_ = true;
        } else if (!has_room()) {
            done_ = gave_up_ = true;
        } else {
            done_ = expand();
        }
        if (++since % 8 == 0) watch.poll();
    }
}

/// Whether the states may grow; their number doubles up to the limit.
bool OrderGraph::has_room() {
    const std::size_t m = problem_.size();
    while (states_.size() + m > room_ || heap_.size() + m > 2 * room_) {
        if (2 * room_ > options_.max_states) return false;
        room_ *= 2;
    }
    return true;
}

bool OrderGraph::expand() {
    const std::uint32_t at = heap_.pop();
    State& state = states_[at];
    if (state.closed) return false;
    state.closed = true;
    if (state.placed == problem_.everything()) {
        goal_ = at;
        options_.known = std::max(options_.known, state.value);
        set_floor();
        return closing();
    }
    ++expanded_;
    // First the states that follow, then what is known of them: by then it is in the cache.
    successors_.clear();
    for (Word left = problem_.everything() & ~state.placed; left != 0; left &= left - 1) {
        const auto x = static_cast<std::size_t>(std::countr_zero(left));
        const std::size_t line = problem_.best_line(x, state.placed);
        if (line == problem_.end(x)) continue;
        Successor next{.placed = state.placed | Word{1} << x,
                       .value = state.value + problem_.score(line),
                       .key = 0.0,
                       .last = static_cast<std::int8_t>(x)};
        if (closing()) close_up(next.placed, next.value);
        next.key = next.value + patterns_.to_go(next.placed);
        if (next.key <= floor_) continue;
        index_.prefetch(hash_of(next.placed));
        successors_.push_back(next);
    }
    for (const Successor& next : successors_) see(next, at);
    return false;
}

/// Places every node that can have its best parent set of all: waiting cannot pay. Right for one
/// best graph, wrong where all states matter.
void OrderGraph::close_up(Word& placed, double& value) const {
    bool again = true;
    while (again && placed != problem_.everything()) {
        again = false;
        for (Word left = problem_.everything() & ~placed; left != 0; left &= left - 1) {
            const auto x = static_cast<std::size_t>(std::countr_zero(left));
            if ((problem_.mask(problem_.begin(x)) & ~placed) != 0) continue;
            placed |= Word{1} << x;
            value += problem_.score(problem_.begin(x));
            again = true;
        }
    }
}

/// Puts a state on the heap unless it is known as well.
void OrderGraph::see(const Successor& next, std::uint32_t via) {
    const std::uint32_t hash = hash_of(next.placed);
    std::uint32_t at = index_.find(
        hash, [&](std::uint32_t item) { return states_[item].placed == next.placed; });
    if (at == no_state) {
        at = static_cast<std::uint32_t>(states_.size());
        index_.insert(hash, states_.size());
        states_.push_back({next.placed, next.value, via, next.last, false});
    } else {
        State& state = states_[at];
        if (state.value >= next.value || state.closed) return;
        state.value = next.value;
        state.via = via;
        state.last = next.last;
    }
    heap_.push(next.key, at);
}

double OrderGraph::bound() const {
    if (done_ && !gave_up_) return options_.known;
    if (begun_) return heap_.empty() ? options_.known : std::max(options_.known, heap_.top_key());
    double best = 0.0;
    for (std::size_t v = 0; v < problem_.size(); ++v) best += problem_.score(problem_.begin(v));
    return std::max(options_.known, best);
}

std::vector<std::int64_t> OrderGraph::lines() const {
    if (goal_ == no_state) return {};
    std::vector<std::size_t> choices;
    for (std::uint32_t at = goal_; states_[at].via != no_state; at = states_[at].via) {
        choices.push_back(static_cast<std::size_t>(states_[at].last));
    }
    std::ranges::reverse(choices);
    // The way is gone again, because states do not keep the lines.
    std::vector<std::int64_t> lines(problem_.size(), -1);
    Word placed = 0;
    const auto place = [&](std::size_t x, std::size_t line) {
        lines[x] = static_cast<std::int64_t>(line);
        placed |= Word{1} << x;
    };
    const auto close = [&] {
        bool again = closing();
        while (again) {
            again = false;
            for (std::size_t x = 0; x < problem_.size(); ++x) {
                const std::size_t first = problem_.begin(x);
                if ((placed >> x & 1) != 0 || (problem_.mask(first) & ~placed) != 0) continue;
                place(x, first);
                again = true;
            }
        }
    };
    close();
    for (const std::size_t x : choices) {
        place(x, problem_.best_line(x, placed));
        close();
    }
    return lines;
}

std::optional<double> OrderGraph::value(Word placed) const {
    const std::uint32_t at = index_.find(
        hash_of(placed), [&](std::uint32_t item) { return states_[item].placed == placed; });
    if (at == no_state || !states_[at].closed) return {};
    return states_[at].value;
}

std::pair<std::vector<Word>, std::vector<double>> OrderGraph::closed(Watch& watch) const {
    std::pair<std::vector<Word>, std::vector<double>> found;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i].closed) {
            found.first.push_back(states_[i].placed);
            found.second.push_back(states_[i].value);
        }
        if (i % 4096 == 0) watch.poll_signals();
    }
    return found;
}

}  // namespace isthmus

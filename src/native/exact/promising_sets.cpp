#include "exact/promising_sets.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace isthmus {

namespace {

constexpr std::size_t widest = 16;
constexpr std::size_t largest_capacity = std::size_t{1} << 18;
/// Extensions scored together, which costs little more than one.
constexpr std::size_t batch = 32;
/// Sets scored in one step, either way.
constexpr std::size_t sets_per_step = 500;
/// Greedy sets in one step at most.
constexpr std::size_t most_grown = 20;
/// Candidates of a greedy set: those that gain most alone.
constexpr std::size_t near = 150;
constexpr double rounding = 2e-10;
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

PromisingSets::PromisingSets(const LocalScore& score, const ScoreBound::Child& bound,
                             Candidates candidates, std::optional<std::size_t> limit)
    : score_{score},
      bound_{bound},
      candidates_{std::move(candidates)},
      may_extend_{!limit || *limit > candidates_.base.size()},
      capacity_{std::max<std::size_t>(4096, 4 * candidates_.names.size())},
      parents_{candidates_.base} {
    const std::size_t room = !limit ? widest : may_extend_ ? *limit - candidates_.base.size() : 0;
    width_ = std::max<std::size_t>(1, std::min({room, widest, candidates_.names.size()}));
    open_.assign(std::min(candidates_.names.size(), near), 1);
    left_out_.push({.loss = -infinity, .serial = 0, .places = {}});
    seen_.insert(std::vector<std::uint32_t>{});
}

bool PromisingSets::step(Watch& watch) {
    if (stage_ == Stage::ranking) rank(watch);
    if (stage_ == Stage::starting) start(watch);
    if (stage_ == Stage::improving) {
        improved_ = improve(watch);
        stop_.reset();
        if (!may_extend_ || improved_ == Code::full) return true;
        enough_ = scored_ + sets_per_step;
        grown_ = 0;
        stage_ = Stage::growing;
    }
    const bool has_room = grow_some(watch);
    stage_ = Stage::improving;
    return !has_room || (improved_ == Code::empty && left_out_.empty());
}

/// Sorts the candidates by what each gains alone.
void PromisingSets::rank(Watch& watch) {
    const auto& names = candidates_.names;
    const auto values = batch_.run(score_, candidates_.child, candidates_.base, names, watch);
    double product = 1.0;
    for (const Variable p : candidates_.base) product *= bound_.levels[index(p)];
    scale_ = bound_.scale * product;
    std::vector<double> gains(names.size());
    for (std::size_t c = 0; c < names.size(); ++c) {
        // What is paid for parameters or edges is added again: the gain in likelihood.
        gains[c] = values[1 + c] - values[0] + scale_ * (bound_.levels[index(names[c])] - 1.0);
    }
    std::vector<std::size_t> order(names.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        // Values that are not numbers come last.
        return gains[a] > gains[b] || (gains[a] == gains[a] && gains[b] != gains[b]);
    });
    for (const std::size_t c : order) {
        marks_.push_back(random_word(names_.size()));
        names_.push_back(names[c]);
        levels_.push_back(bound_.levels[index(names[c])]);
        gains_.push_back(gains[c]);
    }
    stage_ = Stage::starting;
}

/// Scores the smallest set.
void PromisingSets::start(Watch& watch) {
    const auto values = batch_.run(score_, candidates_.child, candidates_.base, {}, watch);
    sets_.push_back({.key = 0,
                     .score = values[0],
                     .best = values[0],
                     .product = 1.0,
                     .members = nullptr,
                     .size = 0,
                     .next = 0,
                     .useful = true});
    index_.insert(0, 0);
    heap_.push(infinity, 0);
    stage_ = Stage::improving;
}

/// Doubles the capacity; false if it has come to its end.
bool PromisingSets::may_double() {
    if (2 * capacity_ > largest_capacity) return false;
    capacity_ *= 2;
    return true;
}

/// Extends the sets with the best guesses.
PromisingSets::Code PromisingSets::improve(Watch& watch) {
    if (!stop_) stop_ = scored_ + sets_per_step;
    while (!picking_ || scored_ < *stop_) {
        if (picking_) {
            if (heap_.empty()) return Code::empty;
            const std::size_t fits = capacity_ - batch;
            if (sets_.size() > fits || heap_.size() > fits) {
                if (!may_double()) return Code::full;
                // Quotas are counted from here, as part of the result; see the sets_per_step of a table.
                stop_ = scored_ + sets_per_step;
                continue;
            }
            at_ = heap_.pop();
            pick_next(at_);
            picking_ = false;
        }
        if (!picked_.empty()) score_picked(at_, watch);
        picking_ = true;
        watch.poll();
    }
    return Code::more;
}

/// Picks the next extensions of a set that are not known yet.
void PromisingSets::pick_next(std::uint32_t at) {
    Scored& set = sets_[at];
    picked_.clear();
    places_.clear();
    while (picked_.size() < batch && set.next < names_.size()) {
        const std::uint32_t c = set.next++;
        if (holds(set, c) || find(set.key ^ marks_[c]) != HashIndex::none) continue;
        picked_.push_back(names_[c]);
        places_.push_back(c);
    }
    if (set.next < names_.size()) heap_.push(guess(set), at);
    set_parents(at);
}

/// Scores what was picked to extend a set, and adds it to the sets.
void PromisingSets::score_picked(std::uint32_t at, Watch& watch) {
    const auto values = batch_.run(score_, candidates_.child, parents_, picked_, watch);
    scored_ += picked_.size();
    for (std::size_t f = 0; f < picked_.size(); ++f) {
        const std::uint32_t added = add(at, places_[f], values[1 + f]);
        const Scored& set = sets_[added];
        if (set.score > best_score_) {
            best_ = added;
            best_score_ = set.score;
        }
        // What a subset beats is seldom the beginning of something better.
        if (set.size < width_ && set.useful) heap_.push(guess(set), added);
    }
}

void PromisingSets::set_parents(std::uint32_t at) {
    const Scored& set = sets_[at];
    parents_.resize(candidates_.base.size());
    for (std::size_t t = 0; t < set.size; ++t) {
        parents_.push_back(names_[static_cast<std::size_t>(set.members[t])]);
    }
}

/// Grows some greedy sets; returns whether there was room.
bool PromisingSets::grow_some(Watch& watch) {
    while (grown_ < most_grown) {
        if (!out_) {
            if (left_out_.empty() || scored_ >= enough_) break;
            open_next();
        }
        if (grow(watch) == Code::full) {
            out_.reset();
            return false;
        }
        note_members();
        out_.reset();
        ++grown_;
    }
    return true;
}

void PromisingSets::open_next() {
    out_ = left_out_.top();
    left_out_.pop();
    std::ranges::fill(open_, 1);
    for (const std::uint32_t c : out_->places) open_[c] = 0;
    at_ = 0;
    picking_ = true;
}

/// Adds the best of the open candidates until none gains; the set is `at_` then.
///
/// What is scored on the way is kept, so that the next call with other candidates open costs
/// little. With strong dependence among the candidates, where guesses by what each gains alone
/// fail, this is what finds large sets.
PromisingSets::Code PromisingSets::grow(Watch& watch) {
    while (sets_[at_].size < width_) {
        if (picking_) {
            if (sets_.size() + names_.size() > capacity_) {
                if (!may_double()) return Code::full;
                at_ = 0;
                continue;
            }
            pick_open();
            picking_ = false;
        }
        if (!picked_.empty()) score_picked(at_, watch);
        picking_ = true;
        if (best_ < 0) break;
        at_ = static_cast<std::uint32_t>(best_);
        watch.poll();
    }
    return Code::more;
}

/// Picks the open candidates whose extension is not known; finds the best of those that are.
void PromisingSets::pick_open() {
    const Scored& set = sets_[at_];
    picked_.clear();
    places_.clear();
    best_ = -1;
    best_score_ = set.score + rounding;
    for (std::uint32_t c = 0; c < open_.size(); ++c) {
        if (open_[c] == 0 || holds(set, c)) continue;
        const std::uint32_t line = find(set.key ^ marks_[c]);
        if (line == HashIndex::none) {
            picked_.push_back(names_[c]);
            places_.push_back(c);
        } else if (sets_[line].score > best_score_) {
            best_ = line;
            best_score_ = sets_[line].score;
        }
    }
    set_parents(at_);
}

/// Notes what to leave out next: each member of the greedy set in turn.
void PromisingSets::note_members() {
    const Scored& set = sets_[at_];
    for (std::size_t t = 0; t < set.size; ++t) {
        const auto c = static_cast<std::uint32_t>(set.members[t]);
        if (c >= open_.size()) continue;
        auto fewer = out_->places;
        fewer.insert(std::ranges::lower_bound(fewer, c), c);
        if (!seen_.insert(fewer).second) continue;
        ++serial_;
        left_out_.push({.loss = -set.score, .serial = serial_, .places = std::move(fewer)});
    }
}

bool PromisingSets::holds(const Scored& set, std::uint32_t c) const {
    return std::find(set.members, set.members + set.size, static_cast<std::int32_t>(c)) !=
           set.members + set.size;
}

std::uint32_t PromisingSets::find(std::uint64_t key) const {
    return index_.find(static_cast<std::uint32_t>(key >> 32),
                       [&](std::uint32_t item) { return sets_[item].key == key; });
}

/// The score to hope for from the next extension of a set.
double PromisingSets::guess(const Scored& set) const {
    const std::size_t c = set.next;
    if (c >= gains_.size()) return -infinity;
    return set.score + gains_[c] - scale_ * set.product * (levels_[c] - 1.0);
}

/// Adds the set `at` with one more candidate.
std::uint32_t PromisingSets::add(std::uint32_t at, std::uint32_t c, double value) {
    const Scored& from = sets_[at];
    const auto room = members_.allocate(from.size + 1);
    const auto place = std::lower_bound(from.members, from.members + from.size,
                                        static_cast<std::int32_t>(c));
    auto target = std::copy(from.members, place, room.begin());
    *target++ = static_cast<std::int32_t>(c);
    std::copy(place, from.members + from.size, target);
    Scored set{.key = from.key ^ marks_[c],
               .score = value,
               .best = value,
               .product = from.product * levels_[c],
               .members = room.data(),
               .size = from.size + 1,
               .next = 0,
               .useful = true};
    double best = -infinity;
    for (const std::int32_t member : room) {
        const std::uint32_t line = find(set.key ^ marks_[static_cast<std::size_t>(member)]);
        if (line != HashIndex::none) best = std::max(best, sets_[line].best);
    }
    set.useful = value > best + rounding;
    set.best = std::max(best, value);
    const auto added = static_cast<std::uint32_t>(sets_.size());
    index_.insert(static_cast<std::uint32_t>(set.key >> 32), added);
    sets_.push_back(set);
    return added;
}

}  // namespace isthmus

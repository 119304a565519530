#include "exact/exhaustive_sets.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace isthmus {

namespace {

constexpr std::size_t quota = 4000;
/// Gains below are rounding: a constant has the same score whatever its parents.
constexpr double noise = 2e-10;
/// Part of a bound that rounding may have eaten.
constexpr double safe = 1e-9;

bool excludes(double limit, double best) { return limit + safe * (1.0 + std::abs(limit)) <= best; }

}  // namespace

ExhaustiveSets::ExhaustiveSets(const LocalScore& score, const ScoreBound::Child& bound,
                               Candidates candidates, double slack)
    : score_{score},
      bound_{bound},
      candidates_{std::move(candidates)},
      slack_{slack},
      listed_room_{1024 + score.size()},
      parents_{candidates_.base} {
    new_->room = 1024 + score.size();
    marks_.reserve(candidates_.names.size());
    for (std::size_t c = 0; c < candidates_.names.size(); ++c) {
        marks_.push_back(exact_keys() ? std::uint64_t{1} << c : random_word(c));
    }
}

bool ExhaustiveSets::step(Watch& watch) {
    if (!started_) {
        start(watch);
        return candidates_.room == 0;
    }
    if (candidates_.room == 0) return true;
    if (!stop_) stop_ = scored_ + quota;
    expand(watch);
    stop_.reset();
    if (next_ < old_->sets.size()) return false;
    if (is_last() || new_->sets.empty()) return true;
    ++size_;
    next_ = 0;
    old_ = std::exchange(new_, std::make_unique<Level>());
    new_->room = 1024 + 2 * candidates_.names.size();
    return false;
}

/// Scores the smallest set; it is always listed.
void ExhaustiveSets::start(Watch& watch) {
    const auto values = batch_.run(score_, candidates_.child, candidates_.base, {}, watch);
    OpenSet set{.key = 0, .best = values[0], .added = 0.0, .product = 1.0, .members = nullptr};
    for (const Variable p : candidates_.base) {
        set.added += bound_.weight[index(p)];
        set.product *= bound_.levels[index(p)];
    }
    listed_.push_back({.score = values[0], .members = nullptr, .size = 0});
    old_->sets.push_back(set);
    scored_ = 1;
    started_ = true;
}

/// Looks at the sets that are larger by one, until the step ends.
void ExhaustiveSets::expand(Watch& watch) {
    while (next_ < old_->sets.size()) {
        if (!expanding_) {
            if (makes_room() || scored_ >= *stop_) return;
            pick();
            expanding_ = true;
            values_done_ = false;
        }
        if (!picked_.empty()) {
            if (!values_done_) {
                values_ = batch_.run(score_, candidates_.child, parents_, names_, watch);
                scored_ += picked_.size();
                values_done_ = true;
            }
            std::span<const double> supports;
            if (bound_.factor > 0.0 && !is_last()) {
                supports =
                    supports_.run(*bound_.support, candidates_.child, parents_, names_, watch);
            }
            store(supports);
        }
        expanding_ = false;
        ++next_;
        if (next_ % 32 == 0) watch.poll();
    }
}

/// Whether one of the lists reached the size at which it once had to be moved.
bool ExhaustiveSets::makes_room() {
    const std::size_t many = candidates_.names.size();
    const bool listed_full = listed_.size() + many > listed_room_;
    const bool open_full = !is_last() && new_->sets.size() + many > new_->room;
    if (!listed_full && !open_full) return false;
    if (listed_full) listed_room_ *= 2;
    if (new_->sets.size() + many > new_->room) new_->room *= 2;
    return true;
}

/// Finds the extensions of the next set that a bound does not exclude.
void ExhaustiveSets::pick() {
    const OpenSet& set = old_->sets[next_];
    picked_.clear();
    names_.clear();
    members_.resize(size_ + 1);
    parents_.resize(candidates_.base.size());
    for (std::size_t t = 0; t < size_; ++t) {
        const Variable v = candidates_.names[static_cast<std::size_t>(set.members[t])];
        members_[t] = index(v);
        parents_.push_back(v);
    }
    if (size_ == 0) {
        const auto many = static_cast<std::int32_t>(candidates_.names.size());
        for (std::int32_t c = 0; c < many; ++c) pick_one(set, c, nullptr);
        return;
    }
    // With c in place of the last member the set must be open as well. Sets that differ in the last
    // member only stand next to each other, so these come right behind, in ascending order of c.
    const std::int32_t* const own = set.members;
    for (std::size_t i = next_ + 1; i < old_->sets.size(); ++i) {
        const OpenSet& sibling = old_->sets[i];
        if (!std::equal(own, own + size_ - 1, sibling.members)) break;
        pick_one(set, sibling.members[size_ - 1], &sibling);
    }
}

void ExhaustiveSets::pick_one(const OpenSet& set, std::int32_t c, const OpenSet* sibling) {
    const auto place = static_cast<std::size_t>(c);
    const std::size_t j = index(candidates_.names[place]);
    const std::uint64_t key = set.key ^ marks_[place];
    double best = set.best;
    for (std::size_t t = 0; t + 1 < size_; ++t) {
        const auto without = static_cast<std::size_t>(set.members[t]);
        const OpenSet* subset = find(key ^ marks_[without], t, c);
        if (subset == nullptr) return;
        best = std::max(best, subset->best);
    }
    if (sibling != nullptr) best = std::max(best, sibling->best);
    const double added = set.added + bound_.weight[j];
    const double product = set.product * bound_.levels[j];
    const double top = bound_.top[candidates_.base.size() + size_ + 1];
    if (excludes(top - added - bound_.scale * product, best - slack_)) return;
    if (!bound_.gain.empty()) {
        members_[size_] = j;
        if (some_member_pays_too_little(product)) return;
    }
    picked_.push_back({.place = c, .best = best, .added = added, .product = product});
    names_.push_back(candidates_.names[place]);
}

/// The open set of the one under way and `last`, without member number `skipped`.
const ExhaustiveSets::OpenSet* ExhaustiveSets::find(std::uint64_t key, std::size_t skipped,
                                                    std::int32_t last) const {
    const std::int32_t* const row = old_->sets[next_].members;
    const auto same = [&](std::uint32_t item) {
        const OpenSet& other = old_->sets[item];
        if (other.key != key) return false;
        if (exact_keys()) return true;
        // Equal keys of different sets are unlikely, not impossible.
        return other.members[size_ - 1] == last &&
               std::equal(row, row + skipped, other.members) &&
               std::equal(row + skipped + 1, row + size_, other.members + skipped);
    };
    const std::uint32_t item = old_->index.find(hash_of(key), same);
    return item == HashIndex::none ? nullptr : &old_->sets[item];
}

/// Whether a member can never earn what it costs, in this set or a superset.
///
/// Leaving it out loses at most its entropy given one or two others and saves at least its part of
/// the penalty here.
bool ExhaustiveSets::some_member_pays_too_little(double product) const {
    for (const std::size_t v : members_) {
        const double saved = bound_.scale * product * (1.0 - 1.0 / bound_.levels[v]) - slack_;
        const double enough = (saved - safe) / (1.0 + safe);
        if (bound_.gain_of(v, v, v) <= enough) return true;
        for (std::size_t t = 0; t < members_.size(); ++t) {
            const std::size_t p = members_[t];
            if (p == v) continue;
            if (!bound_.pairs) {
                if (bound_.gain_of(p, 0, v) <= enough) return true;
                continue;
            }
            for (std::size_t u = 0; u <= t; ++u) {
                const std::size_t q = members_[u];
                if (q != v && bound_.gain_of(p, q, v) <= enough) return true;
            }
        }
    }
    return false;
}

void ExhaustiveSets::store(std::span<const double> supports) {
    const double top = bound_.top[candidates_.base.size() + size_ + 1];
    const std::uint64_t key = old_->sets[next_].key;
    for (std::size_t f = 0; f < picked_.size(); ++f) {
        const Picked& one = picked_[f];
        const double value = values_[1 + f];
        double best = one.best;
        if (value > best - slack_ + noise) {
            listed_.push_back({.score = value,
                               .members = extended(listed_members_, one.place),
                               .size = size_ + 1});
            best = std::max(best, value);
        }
        if (is_last()) continue;
        const double support = supports.empty() ? 0.0 : supports[1 + f];
        const double limit =
            top - one.added - bound_.scale * one.product - bound_.factor * support;
        if (excludes(limit, best - slack_)) continue;
        const OpenSet open{.key = key ^ marks_[static_cast<std::size_t>(one.place)],
                           .best = best,
                           .added = one.added,
                           .product = one.product,
                           .members = extended(new_->members, one.place)};
        new_->index.insert(hash_of(open.key), new_->sets.size());
        new_->sets.push_back(open);
    }
}

const std::int32_t* ExhaustiveSets::extended(Arena<std::int32_t>& arena, std::int32_t last) const {
    const auto room = arena.allocate(size_ + 1);
    const std::int32_t* const row = old_->sets[next_].members;
    std::copy(row, row + size_, room.begin());
    room.back() = last;
    return room.data();
}

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.hpp"
#include "core/growing_vector.hpp"
#include "core/hash_index.hpp"
#include "exact/candidates.hpp"
#include "scoring/extension_batch.hpp"
#include "scoring/score_bound.hpp"

namespace isthmus {

/// A parent set with its score; members are positions in the list of candidates, ascending.
struct ListedSet {
    double score;
    const std::int32_t* members;
    std::size_t size;
};

/// Lists the useful parent sets of one child, level by level.
///
/// A level holds the open sets of one size: those of which a superset may still be useful. A set is
/// looked at when all its subsets that are smaller by one are open. It is listed when it scores
/// more than every subset (less a slack), and stays open unless the bound shows that no superset
/// can. What of the bound does not need the support is tested before the set is scored.
class ExhaustiveSets {
public:
    /// The score and what the bound views must outlive this object.
    ExhaustiveSets(const LocalScore& score, const ScoreBound::Child& bound, Candidates candidates,
                   double slack);

    /// Scores some thousand sets; returns whether there are no more. Left by an exception, the next
    /// call goes on with the same step.
    ///
    /// Tables with a quota change their way between steps, so where a step ends is part of their
    /// result: after 4,000 scores, and where the room that the first version kept had to double.
    bool step(Watch& watch);

    /// Whether a step was left by an exception and will go on.
    [[nodiscard]] bool in_step() const { return stop_.has_value(); }
    [[nodiscard]] std::size_t scored() const { return scored_; }
    [[nodiscard]] const GrowingVector<ListedSet>& listed() const { return listed_; }
    [[nodiscard]] const Candidates& candidates() const { return candidates_; }

private:
    struct OpenSet {
        std::uint64_t key;  // sum modulo 2 of the members' marks
        double best;        // best score of the set and its subsets
        double added;       // sum of the weights
        double product;     // product of the levels
        const std::int32_t* members;
    };
    struct Level {
        GrowingVector<OpenSet> sets;
        Arena<std::int32_t> members;
        HashIndex index;
        std::size_t room = 0;
    };
    /// An extension that is worth a score.
    struct Picked {
        std::int32_t place;
        double best;
        double added;
        double product;
    };

    void start(Watch& watch);
    void expand(Watch& watch);
    [[nodiscard]] bool makes_room();
    void pick();
    void pick_one(const OpenSet& set, std::int32_t c, const OpenSet* sibling);
    [[nodiscard]] const OpenSet* find(std::uint64_t key, std::size_t skipped,
                                      std::int32_t last) const;
    [[nodiscard]] bool some_member_pays_too_little(double product) const;
    void store(std::span<const double> values);
    [[nodiscard]] const std::int32_t* extended(Arena<std::int32_t>& arena,
                                               std::int32_t last) const;
    /// Whether the key of a set is the set itself.
    [[nodiscard]] bool exact_keys() const { return candidates_.names.size() <= 64; }
    [[nodiscard]] bool is_last() const { return size_ + 1 == candidates_.room; }

    const LocalScore& score_;
    ScoreBound::Child bound_;
    Candidates candidates_;
    double slack_;

    std::unique_ptr<Level> old_ = std::make_unique<Level>();
    std::unique_ptr<Level> new_ = std::make_unique<Level>();
    GrowingVector<ListedSet> listed_;
    Arena<std::int32_t> listed_members_;
    std::size_t listed_room_;
    std::size_t size_ = 0;  // members of the sets in the old level
    std::size_t next_ = 0;  // of them, the next to expand
    std::size_t scored_ = 0;
    bool started_ = false;
    std::optional<std::size_t> stop_;  // of the step under way, in scored sets

    // The set that is being expanded.
    bool expanding_ = false;
    bool values_done_ = false;
    std::vector<std::uint64_t> marks_;
    std::vector<Variable> parents_;
    std::vector<std::size_t> members_;
    std::vector<Variable> names_;
    std::vector<Picked> picked_;
    ExtensionBatch batch_;
    ExtensionBatch supports_;
    std::span<const double> values_;
};

}  // namespace isthmus

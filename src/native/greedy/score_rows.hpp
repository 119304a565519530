#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.hpp"
#include "core/watch.hpp"
#include "greedy/bit_matrix.hpp"
#include "greedy/class_rules.hpp"
#include "scoring/local_score.hpp"

namespace isthmus {

/// What a score says, computed once: single scores, and rows of the extensions that gain.
///
/// A hash table maps a child with a set of parents to its score and, once somebody asked, to the
/// list of the variables that would gain as one parent more. Keys are 64 random-looking bits; two
/// sets with the same key would be taken for each other, which at a million sets has odds of one in
/// thirty million.
class ScoreRows {
public:
    struct Gain {
        std::size_t variable;
        double gain;
    };

    /// The score and the rules must outlive this object.
    ScoreRows(const LocalScore& score, const ClassRules& rules);

    /// An extension must gain more than this to be listed.
    void set_tolerance(double tolerance) { tolerance_ = tolerance; }

    /// The score of a child with a set of parents.
    [[nodiscard]] double score(std::size_t child, const Word* parents, Watch& watch);
    /// The extensions of this set that gain, in ascending order of the variable added.
    [[nodiscard]] std::span<const Gain> row(std::size_t child, const Word* parents, Watch& watch);

    [[nodiscard]] std::uint64_t key(std::size_t child, const Word* parents) const;
    /// Scores asked for so far.
    [[nodiscard]] std::size_t evaluations() const { return evaluations_; }

private:
    struct Entry {
        std::uint64_t key = 0;  // 0: free
        double value = 0.0;
        const Gain* gains = nullptr;  // null: not asked for yet
        std::size_t count = 0;
    };

    /// One of several tables, so that growing one of them does not take long.
    class Shard {
    public:
        Shard() : entries_(first_size) {}
        /// The entry of a key, or a free one for it. Valid until the next call.
        [[nodiscard]] Entry& at(std::uint64_t key);
        [[nodiscard]] const Entry* find(std::uint64_t key) const;

    private:
        static constexpr std::size_t first_size = 64;
        [[nodiscard]] std::size_t slot(std::uint64_t key) const;
        void grow();

        std::vector<Entry> entries_;
        std::size_t used_ = 0;
    };

    [[nodiscard]] Shard& shard(std::uint64_t key) { return shards_[key >> 58]; }
    void list_parents(const Word* parents);

    const LocalScore& score_;
    const ClassRules& rules_;
    double tolerance_ = 0.0;
    std::size_t words_;
    std::vector<std::uint64_t> mixed_;  // a random-looking number for each variable
    std::array<Shard, 64> shards_;
    Arena<Gain> gains_;
    std::vector<Variable> parents_;
    std::vector<Variable> candidates_;
    std::vector<double> values_;
    std::size_t evaluations_ = 0;
};

}  // namespace isthmus

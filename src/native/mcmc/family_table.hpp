#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/bit_set.hpp"
#include "mcmc/chance.hpp"
#include "scoring/local_score.hpp"

namespace isthmus {

/// A sum of weights as `mantissa * exp(shift)`; shifts are relative to the best parent set.
struct WeightSum {
    double shift;
    double mantissa;
};

/// The weights of the parent sets of one node, with their sums over all subsets of a set.
///
/// A parent set is a subset of the candidates, or such a subset and one node outside of them. Sums
/// are stored for every subset of the candidates, with one column for the subsets themselves and
/// one for each node outside.
///
/// Candidates are divided into blocks of four. Layer q holds sums over the subsets of the first q
/// blocks, with the other members fixed: layer 0 the weights themselves, the last one the sums over
/// all subsets. A parent set is drawn block by block, from the last to the first.
class FamilyTable {
public:
    struct Family {
        std::uint32_t inner;
        std::uint32_t column;  // 0: no parent outside the candidates
        double score;          // relative to the best
    };

    /// `candidates` and `outside` are disjoint; `required` is a subset of the candidates.
    FamilyTable(Variable child, std::vector<Variable> candidates, std::vector<Variable> outside,
                Variables required, std::size_t max_parents);

    /// Whether another table is over the same parent sets.
    [[nodiscard]] bool same_families(const FamilyTable& other) const {
        return child_ == other.child_ && candidates_ == other.candidates_ &&
               outside_ == other.outside_ && required_ == other.required_ &&
               max_parents_ == other.max_parents_;
    }

    /// Scores all parent sets and prepares the sums. After a pause the same call goes on.
    void build(const LocalScore& score, Watch& watch);
    [[nodiscard]] bool built() const { return stage_ == Stage::done; }

    /// The weight of all parent sets within `allowed`.
    [[nodiscard]] WeightSum sum(std::span<const Word> allowed) const;
    /// The logarithm of that, relative to the best parent set.
    [[nodiscard]] double total(std::span<const Word> allowed) const;
    /// The same for parent sets with at least one member in `wanted`, a subset of `allowed`.
    [[nodiscard]] double restricted(std::span<const Word> allowed,
                                    std::span<const Word> wanted) const;
    /// The logarithm of `more` minus `less`, which are the sums over `allowed` with and without
    /// `wanted`; adds up parts that are not differences if too many digits cancel.
    [[nodiscard]] double difference(WeightSum more, WeightSum less, std::span<const Word> allowed,
                                    std::span<const Word> wanted) const;

    /// Draws a parent set within `allowed`, with a member in `wanted` unless that is empty. There
    /// must be one.
    [[nodiscard]] Family draw(std::span<const Word> allowed, std::span<const Word> wanted,
                              Chance& chance) const;
    /// Writes the members of a parent set.
    void parents(const Family& family, std::span<Word> out) const;

    /// Writes for each node the probability that it is a parent, given that all parents are in
    /// `allowed` and one at least is in `wanted`, a subset, unless that is empty.
    void edge_probabilities(std::span<const Word> allowed, std::span<const Word> wanted,
                            std::span<double> out) const;

    [[nodiscard]] double best_score() const { return best_; }
    [[nodiscard]] std::size_t families() const { return rows_ * width_; }

private:
    enum class Stage { scoring, weighting, adding, scaling, done };
    static constexpr std::size_t block = 4;

    /// Which parent sets a sum is over, in the terms of the table.
    struct Filter {
        std::uint32_t allowed;
        std::uint32_t wanted;
        std::vector<std::uint8_t> column;  // 0: not allowed, 1: allowed, 2: allowed and wanted
    };
    /// All parent sets with some members fixed, those beyond the first `layer` blocks.
    struct Part {
        std::uint32_t fixed;
        std::uint32_t column;
        std::size_t layer;
        double log_weight;
    };

    void score_subset(const LocalScore& score, Watch& watch);
    void weigh();
    void add_subsets(Watch& watch);
    void scale_rows();
    [[nodiscard]] std::uint32_t index(std::span<const Word> set) const;
    [[nodiscard]] Filter filter(std::span<const Word> allowed, std::span<const Word> wanted) const;
    /// The sum over the subsets of `row` in the first `layer` blocks.
    [[nodiscard]] WeightSum at(std::size_t layer, std::uint32_t row, std::uint32_t column) const;
    /// Divides what passes a filter into parts whose weights are stored.
    [[nodiscard]] std::vector<Part> divide(const Filter& filter) const;
    void divide(const Filter& filter, const Part& part, std::vector<Part>& parts) const;
    /// Draws the members in the first blocks of a part; `wanted` is 0 if all its sets are wanted.
    [[nodiscard]] Family complete(Part part, std::uint32_t allowed, std::uint32_t wanted,
                                  Chance& chance) const;
    /// Edge probabilities by differences of sums; returns whether enough digits are left.
    [[nodiscard]] bool edges_by_differences(const Filter& filter, bool free,
                                            std::span<double> out) const;
    void edges_by_parts(const Filter& filter, std::span<double> out) const;

    Variable child_;
    std::vector<Variable> candidates_;
    std::vector<Variable> outside_;
    std::uint32_t required_ = 0;
    std::size_t max_parents_;
    std::size_t rows_;
    std::size_t width_;  // of a row: one for the candidates alone, one for each node outside

    Stage stage_ = Stage::scoring;
    std::size_t next_ = 0;
    std::vector<Variable> parents_;
    std::vector<Variable> extensions_;
    std::vector<double> scored_;
    double best_ = 0.0;
    bool linear_ = true;                       // all weights fit one scale; else logarithms are kept
    std::vector<std::vector<double>> layers_;  // all but the last
    std::vector<double> sums_;                 // the last layer: mantissas
    std::vector<double> shift_;                // of each of its rows; empty if linear
};

}  // namespace isthmus

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <vector>

#include "core/arena.hpp"
#include "core/growing_vector.hpp"
#include "core/hash_index.hpp"
#include "core/max_heap.hpp"
#include "exact/candidates.hpp"
#include "scoring/extension_batch.hpp"
#include "scoring/score_bound.hpp"

namespace isthmus {

/// Scores parent sets of one child in the order in which they look promising.
///
/// Two ways in turn. Independence selection (Scanagatta, de Campos, Corani and Zaffalon 2015): if
/// what j tells of the child did not depend on the parents P, the likelihood of P + j would be that
/// of P plus what j gains alone, and the penalty is known. The set with the best such guess is
/// extended next. And sets are grown greedily: one among all candidates, then without each of its
/// members, then without one of the members of those, the best first. In an order some candidates
/// are not to be had, and the best set without them is what a search will want.
class PromisingSets {
public:
    /// A set that was scored.
    struct Scored {
        std::uint64_t key;
        double score;
        double best;                   // best score of the set and of its subsets seen
        double product;                // of the members' levels
        const std::int32_t* members;   // positions in the list of candidates, ascending
        std::uint32_t size;
        std::uint32_t next;            // extensions tried
        bool useful;                   // no subset seen scores as much
    };

    /// The score and what the bound views must outlive this object. `limit` is the largest number
    /// of parents, the required ones included.
    PromisingSets(const LocalScore& score, const ScoreBound::Child& bound, Candidates candidates,
                  std::optional<std::size_t> limit);

    /// Scores some hundred sets; returns whether nothing looks promising any more. Left by an
    /// exception, the next call goes on with the same step.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t scored() const { return scored_; }
    /// Candidates by what they gain alone, the largest gain first; known after the first step.
    [[nodiscard]] const std::vector<Variable>& names() const { return names_; }
    [[nodiscard]] const GrowingVector<Scored>& sets() const { return sets_; }
    [[nodiscard]] const std::vector<Variable>& base() const { return candidates_.base; }
    /// Whether any set but the smallest is allowed.
    [[nodiscard]] bool may_extend() const { return may_extend_; }

private:
    enum class Stage { ranking, starting, improving, growing };
    enum class Code { more, empty, full };
    /// Candidates that are left out of the next greedy set.
    struct LeftOut {
        double loss;  // the score of the set without them, negative
        std::size_t serial;
        std::vector<std::uint32_t> places;

        /// For a queue with the smallest on top.
        bool operator<(const LeftOut& other) const {
            return loss != other.loss ? loss > other.loss : serial > other.serial;
        }
    };

    void rank(Watch& watch);
    void start(Watch& watch);
    [[nodiscard]] Code improve(Watch& watch);
    [[nodiscard]] bool may_double();
    void pick_next(std::uint32_t at);
    [[nodiscard]] bool grow_some(Watch& watch);
    void open_next();
    [[nodiscard]] Code grow(Watch& watch);
    void pick_open();
    void note_members();
    void score_picked(std::uint32_t at, Watch& watch);
    void set_parents(std::uint32_t at);
    [[nodiscard]] bool holds(const Scored& set, std::uint32_t c) const;
    [[nodiscard]] std::uint32_t find(std::uint64_t key) const;
    [[nodiscard]] double guess(const Scored& set) const;
    std::uint32_t add(std::uint32_t at, std::uint32_t c, double value);

    const LocalScore& score_;
    ScoreBound::Child bound_;
    Candidates candidates_;
    bool may_extend_;
    std::size_t width_;      // members of the largest set
    std::size_t capacity_;   // doubles up to a limit, after which the sets are full

    double scale_ = 0.0;     // penalty for one configuration of the parents
    std::vector<Variable> names_;
    std::vector<double> levels_;
    std::vector<double> gains_;  // what each gains alone, the penalty not counted
    std::vector<std::uint64_t> marks_;

    GrowingVector<Scored> sets_;
    Arena<std::int32_t> members_;
    HashIndex index_;
    MaxHeap<std::uint32_t> heap_;
    std::size_t scored_ = 0;

    std::priority_queue<LeftOut> left_out_;
    std::set<std::vector<std::uint32_t>> seen_;
    std::size_t serial_ = 1;

    // The step under way.
    Stage stage_ = Stage::ranking;
    Code improved_ = Code::more;
    std::optional<std::size_t> stop_;
    std::size_t grown_ = 0;
    std::size_t enough_ = 0;
    std::optional<LeftOut> out_;   // of the greedy set under way
    std::vector<std::uint8_t> open_;
    std::uint32_t at_ = 0;         // the set that is being extended
    std::int64_t best_ = -1;       // its best extension
    double best_score_ = 0.0;
    bool picking_ = true;          // whether its extensions are still to be picked
    std::vector<Variable> parents_;
    std::vector<Variable> picked_;
    std::vector<std::uint32_t> places_;
    ExtensionBatch batch_;
};

}  // namespace isthmus

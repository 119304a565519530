#include <algorithm>

#include "counting/bitmaps.hpp"
#include "counting/run_counter.hpp"

namespace isthmus {

namespace {

// Bits of the bitmaps of one block of rows: they stay in the second-level cache.
constexpr std::size_t block_bits = std::size_t{1} << 22;

/// Counts block by block of rows; within one, run by run of sets that share all but the last
/// variable. Intersections of the shared variables are computed once, and many of them are
/// intersected with many levels of last variables at a time, which spares reads.
template <class Code>
class BitmapCounter {
public:
    BitmapCounter(const CodedColumns<Code>& data, const VariableSets& sets,
                  const std::vector<std::uint8_t>& chosen, LastLevel last, CountTables& tables)
        : data_{data},
          sets_{sets},
          chosen_{chosen},
          last_{last},
          tables_{tables},
          first_(data.variables()),
          depth_(sets.size()) {
        std::vector<std::uint8_t> used(data.variables());
        for (std::size_t q = 0; q < sets.count(); ++q) {
            if (chosen[q] == 0) continue;
            for (const Variable v : sets.set(q)) used[static_cast<std::size_t>(v)] = 1;
        }
        std::size_t bitmaps = 0;
        for (std::size_t v = 0; v < used.size(); ++v) {
            if (used[v] == 0) continue;
            used_.push_back(static_cast<Variable>(v));
            first_[v] = bitmaps;
            bitmaps += data.levels(static_cast<Variable>(v)) - 1;
        }
        spare_ = bitmaps;
        const std::size_t all = bitmaps + sets.size() + most_prefixes;
        const std::size_t fitting = std::clamp<std::size_t>(block_bits / (64 * all), 64, 512);
        words_ = std::min(fitting / word_lanes * word_lanes, bitmap_words(data.rows));
        maps_ = ZeroedArray<Word>{all * words_};
        grid_.resize(most_prefixes * bitmaps);
        alone_.resize(bitmaps);
    }

    void count(Watch& watch) {
        const std::vector<std::size_t> runs = sets_.runs();
        for (std::size_t start = 0; start < data_.rows; start += 64 * words_) {
            fill(start, std::min(64 * words_, data_.rows - start));
            for (std::size_t run = 0; run + 1 < runs.size(); ++run) {
                find_stretches(runs[run], runs[run + 1]);
                if (!stretches_.empty()) count_run(sets_.set(runs[run]), watch);
                watch.poll_signals();
            }
        }
    }

private:
    static constexpr std::size_t most_prefixes = 16;

    /// A choice of levels of the first variables of a run.
    struct Depth {
        std::size_t level = 0;  // of the next variable
        std::size_t cell = 0;
        const Word* map = nullptr;  // intersection so far; none: all rows
        std::int64_t rows = 0;
    };

    /// Sets of a run that are counted together: bitmaps of their last variables are adjacent.
    struct Stretch {
        std::size_t begin;
        std::size_t end;
        std::size_t first;    // number of the first bitmap
        std::size_t bitmaps;  // how many
    };

    [[nodiscard]] Word* map(std::size_t number) { return maps_.data() + number * words_; }
    [[nodiscard]] std::size_t first_of(Variable v) const {
        return first_[static_cast<std::size_t>(v)];
    }

    void fill(std::size_t start, std::size_t rows) {
        for (const Variable v : used_) {
            const std::span<const Code> codes{data_.column(v) + start, rows};
            for (std::size_t level = 0; level + 1 < data_.levels(v); ++level) {
                const std::size_t number = first_of(v) + level;
                write_bitmap(codes, level, {map(number), words_});
                alone_[number] = count_bits(map(number), words_);
            }
        }
        depth_[0] = {
            .level = 0, .cell = 0, .map = nullptr, .rows = static_cast<std::int64_t>(rows)};
    }

    void find_stretches(std::size_t begin, std::size_t end) {
        stretches_.clear();
        for (std::size_t q = begin; q < end; ++q) {
            if (chosen_[q] == 0) continue;
            const Variable v = sets_.last(q);
            const std::size_t bitmaps = data_.levels(v) - 1;
            if (!stretches_.empty() && stretches_.back().end == q &&
                stretches_.back().first + stretches_.back().bitmaps == first_of(v)) {
                stretches_.back().end = q + 1;
                stretches_.back().bitmaps += bitmaps;
            } else {
                stretches_.push_back(
                    {.begin = q, .end = q + 1, .first = first_of(v), .bitmaps = bitmaps});
            }
        }
    }

    void count_run(Variables variables, Watch& watch) {
        const std::size_t shared = variables.size() - 1;
        const std::size_t spared = last_ == LastLevel::none ? 1 : 0;
        if (shared == 0) {
            add(depth_[0]);
            count_added();
            return;
        }
        for (std::size_t t = 0; t < shared; ++t) {
            // All its cells are of a last level.
            if (spared == 1 && data_.levels(variables[t]) == 1) return;
            depth_[t].level = 0;
        }
        std::size_t t = 0;
        while (true) {
            for (; t + 1 < shared; ++t) depth_[t + 1] = descend(t, variables[t], map(spare_ + t));
            if (depth_[t].rows > 0) {
                const std::size_t levels = data_.levels(variables[t]) - spared;
                for (depth_[t].level = 0; depth_[t].level < levels; ++depth_[t].level) {
                    Word* const room = map(spare_ + variables.size() + prefixes_.size());
                    if (const Depth next = descend(t, variables[t], room); next.rows > 0) add(next);
                }
                count_added();
            }
            watch.poll_signals();
            // The next combination of levels of all shared variables but the last.
            while (true) {
                if (t == 0) return;
                --t;
                if (++depth_[t].level < data_.levels(variables[t]) - spared) break;
                depth_[t].level = 0;
            }
        }
    }

    [[nodiscard]] Depth descend(std::size_t t, Variable variable, Word* room) {
        const Depth& here = depth_[t];
        const std::size_t levels = data_.levels(variable);
        const std::size_t cell = here.cell * levels + here.level;
        if (here.level == levels - 1) {
            return {.level = 0, .cell = cell, .map = here.map, .rows = here.rows};
        }
        const std::size_t number = first_of(variable) + here.level;
        const Word* const own = map(number);
        if (here.map == nullptr) {
            return {.level = 0, .cell = cell, .map = own, .rows = alone_[number]};
        }
        const std::int64_t rows = store_common(here.map, own, room, words_);
        return {.level = 0, .cell = cell, .map = room, .rows = rows};
    }

    /// Adds an intersection of shared variables to those that are counted next.
    void add(const Depth& prefix) {
        if (prefix.map == nullptr) {
            for (const Stretch& stretch : stretches_) {
                add_counts(stretch, prefix, alone_.data() + stretch.first);
            }
            return;
        }
        prefixes_.push_back(prefix.map);
        added_.push_back(prefix);
        if (prefixes_.size() == most_prefixes) count_added();
    }

    void count_added() {
        if (prefixes_.empty()) return;
        for (const Stretch& stretch : stretches_) {
            count_grid(prefixes_, map(stretch.first), stretch.bitmaps, words_, grid_.data());
            for (std::size_t i = 0; i < added_.size(); ++i) {
                add_counts(stretch, added_[i], grid_.data() + i * stretch.bitmaps);
            }
        }
        prefixes_.clear();
        added_.clear();
    }

    void add_counts(const Stretch& stretch, const Depth& prefix, const std::int64_t* counts) {
        for (std::size_t q = stretch.begin; q < stretch.end; ++q) {
            const std::size_t levels = data_.levels(sets_.last(q));
            std::int64_t* const cells = tables_.table(q).data() + prefix.cell * levels;
            for (std::size_t c = 0; c + 1 < levels; ++c) cells[c] += counts[c];
            if (last_ == LastLevel::total) cells[levels - 1] += prefix.rows;
            counts += levels - 1;
        }
    }

    const CodedColumns<Code>& data_;
    const VariableSets& sets_;
    const std::vector<std::uint8_t>& chosen_;
    LastLevel last_;
    CountTables& tables_;
    std::vector<Variable> used_;
    std::vector<std::size_t> first_;  // number of each variable's first bitmap
    std::vector<Depth> depth_;
    std::vector<Stretch> stretches_;  // of the run that is counted
    std::vector<const Word*> prefixes_;
    std::vector<Depth> added_;
    std::vector<std::int64_t> grid_;
    std::vector<std::int64_t> alone_;  // rows of each bitmap
    std::size_t words_ = 0;
    std::size_t spare_ = 0;  // number of the first bitmap for intersections
    ZeroedArray<Word> maps_;
};

}  // namespace

template <class Code>
void add_by_bitmaps(const CodedColumns<Code>& data, const VariableSets& sets,
                    const std::vector<std::uint8_t>& chosen, LastLevel last, CountTables& tables,
                    Watch& watch) {
    BitmapCounter<Code>{data, sets, chosen, last, tables}.count(watch);
}

template void add_by_bitmaps(const CodedColumns<std::uint8_t>&, const VariableSets&,
                             const std::vector<std::uint8_t>&, LastLevel, CountTables&, Watch&);
template void add_by_bitmaps(const CodedColumns<std::uint16_t>&, const VariableSets&,
                             const std::vector<std::uint8_t>&, LastLevel, CountTables&, Watch&);

}  // namespace isthmus

#include <algorithm>

#include "counting/bitmaps.hpp"
#include "counting/run_counter.hpp"

namespace isthmus {

namespace {

// Bits of the bitmaps of one block of rows: they stay in the second-level cache.
constexpr std::size_t block_bits = std::size_t{1} << 22;

/// Counts block by block of rows; within one, run by run of sets that share all but the last
/// variable, so that the intersection of the others is computed once.
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
        const std::size_t all = bitmaps + sets.size();
        const std::size_t fitting = std::clamp<std::size_t>(block_bits / (64 * all), 64, 512);
        words_ = std::min(bitmap_words(64 * fitting), bitmap_words(data.rows));
        spare_ = bitmaps;
        maps_ = ZeroedArray<Word>{all * words_};
    }

    void count(Watch& watch) {
        const std::vector<std::size_t> runs = sets_.runs();
        for (std::size_t start = 0; start < data_.rows; start += 64 * words_) {
            fill(start, std::min(64 * words_, data_.rows - start));
            for (std::size_t run = 0; run + 1 < runs.size(); ++run) {
                if (any_chosen(runs[run], runs[run + 1])) {
                    count_run(runs[run], runs[run + 1], watch);
                }
                watch.poll_signals();
            }
        }
    }

private:
    /// One more variable of a run: where its choice of levels leads.
    struct Depth {
        std::size_t level = 0;
        std::size_t cell = 0;
        const Word* map = nullptr;  // intersection so far; none: all rows
        std::int64_t rows = 0;
    };

    [[nodiscard]] bool any_chosen(std::size_t begin, std::size_t end) const {
        return std::any_of(chosen_.begin() + static_cast<std::ptrdiff_t>(begin),
                           chosen_.begin() + static_cast<std::ptrdiff_t>(end),
                           [](std::uint8_t flag) { return flag != 0; });
    }

    [[nodiscard]] Word* map(std::size_t number) { return maps_.data() + number * words_; }

    void fill(std::size_t start, std::size_t rows) {
        for (const Variable v : used_) {
            const std::span<const Code> codes{data_.column(v) + start, rows};
            for (std::size_t level = 0; level + 1 < data_.levels(v); ++level) {
                write_bitmap(codes, level, {map(first_[static_cast<std::size_t>(v)] + level), words_});
            }
        }
        depth_[0] = {.level = 0, .cell = 0, .map = nullptr,
                     .rows = static_cast<std::int64_t>(rows)};
    }

    void count_run(std::size_t begin, std::size_t end, Watch& watch) {
        const Variables variables = sets_.set(begin);
        const std::size_t shared = variables.size() - 1;
        const std::size_t spared = last_ == LastLevel::none ? 1 : 0;
        for (std::size_t t = 0; t < shared; ++t) {
            // All its cells are of a last level.
            if (spared == 1 && data_.levels(variables[t]) == 1) return;
            depth_[t].level = 0;
        }
        std::size_t t = 0;
        while (true) {
            for (; t < shared; ++t) descend(t, variables[t]);
            if (depth_[shared].rows > 0) {
                for (std::size_t q = begin; q < end; ++q) {
                    if (chosen_[q] != 0) count_last(q, depth_[shared]);
                }
            }
            watch.poll_signals();
            // The next combination of levels of all variables but the last.
            while (true) {
                if (t == 0) return;
                --t;
                if (++depth_[t].level < data_.levels(variables[t]) - spared) break;
                depth_[t].level = 0;
            }
        }
    }

    void descend(std::size_t t, Variable variable) {
        const Depth& here = depth_[t];
        Depth& next = depth_[t + 1];
        const std::size_t levels = data_.levels(variable);
        next.cell = here.cell * levels + here.level;
        if (here.level == levels - 1) {
            next.map = here.map;
            next.rows = here.rows;
            return;
        }
        const Word* const own = map(first_[static_cast<std::size_t>(variable)] + here.level);
        if (here.map == nullptr) {
            next.map = own;
            next.rows = count_bits(own, words_);
        } else {
            Word* const target = map(spare_ + t);
            next.rows = store_common(here.map, own, target, words_);
            next.map = target;
        }
    }

    void count_last(std::size_t q, const Depth& prefix) {
        const Variable v = sets_.last(q);
        const std::size_t levels = data_.levels(v);
        const auto cells = tables_.table(q).subspan(prefix.cell * levels, levels);
        const Word* own = map(first_[static_cast<std::size_t>(v)]);
        for (std::size_t c = 0; c + 1 < levels; ++c, own += words_) {
            cells[c] += prefix.map == nullptr ? count_bits(own, words_)
                                              : count_common(prefix.map, own, words_);
        }
        if (last_ == LastLevel::total) cells[levels - 1] += prefix.rows;
    }

    const CodedColumns<Code>& data_;
    const VariableSets& sets_;
    const std::vector<std::uint8_t>& chosen_;
    LastLevel last_;
    CountTables& tables_;
    std::vector<Variable> used_;
    std::vector<std::size_t> first_;  // number of each variable's first bitmap
    std::vector<Depth> depth_;
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

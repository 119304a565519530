#include "exact/set_list.hpp"

#include <algorithm>

#include "core/line_scan.hpp"

namespace isthmus {

bool SetListBuilder::Less::operator()(const Line& a, const Line& b) const {
    if (a.score != b.score) {
        // Values that are not numbers come last.
        if (a.score == a.score && b.score == b.score) return a.score > b.score;
        if (a.score == a.score || b.score == b.score) return a.score == a.score;
    }
    if (a.size != b.size) return a.size < b.size;
    for (std::size_t w = words; w-- > 0;) {
        if (a.words[w] != b.words[w]) return a.words[w] < b.words[w];
    }
    return false;
}

SetListBuilder::SetListBuilder(std::size_t variables, const ExhaustiveSets* exhaustive,
                               const PromisingSets* promising)
    : words_{words_for(variables)}, exhaustive_{exhaustive}, promising_{promising} {
    lines_.reserve((exhaustive_ == nullptr ? 0 : exhaustive_->listed().size()) +
                   (promising_ == nullptr ? 0 : promising_->sets().size()));
}

void SetListBuilder::run(Watch& watch) {
    if (!sort_) gather(watch);
    if (!sorted_) {
        sort_->run(watch);
        sorted_ = true;
    }
    if (promising_ != nullptr) prune(watch);
    write(watch);
}

void SetListBuilder::gather(Watch& watch) {
    const std::size_t first = promising_ == nullptr      ? 0
                              : promising_->may_extend() ? promising_->sets().size()
                                                         : std::min<std::size_t>(
                                                               1, promising_->sets().size());
    const std::size_t count =
        first + (exhaustive_ == nullptr ? 0 : exhaustive_->listed().size());
    while (gathered_ < count) {
        const std::size_t i = gathered_++;
        if (i < first) {
            const auto& set = promising_->sets()[i];
            if (set.useful) {
                collect(promising_->base(), promising_->names(), set.members, set.size, set.score);
            }
        } else {
            const ListedSet& set = exhaustive_->listed()[i - first];
            const Candidates& from = exhaustive_->candidates();
            collect(from.base, from.names, set.members, set.size, set.score);
        }
        if (gathered_ % 256 == 0) watch.poll();
    }
    sort_.emplace(std::move(lines_), Less{words_});
}

void SetListBuilder::collect(const std::vector<Variable>& base, const std::vector<Variable>& names,
                             const std::int32_t* members, std::size_t size, double score) {
    const auto words = storage_.allocate(words_);
    for (const Variable p : base) add(words, p);
    for (std::size_t t = 0; t < size; ++t) {
        add(words, names[static_cast<std::size_t>(members[t])]);
    }
    lines_.push_back({.score = score, .size = base.size() + size, .words = words.data()});
}

/// Keeps the lines of which no better one is a subset.
void SetListBuilder::prune(Watch& watch) {
    const auto lines = sort_->items();
    if (kept_.capacity() == 0) {
        kept_.reserve(lines.size());
        folded_.reserve(lines.size());
    }
    while (looked_at_ < lines.size()) {
        const Line& line = lines[looked_at_];
        const std::span<const Word> own{line.words, words_};
        const Word outside = ~fold(own);
        std::size_t at = first_disjoint(folded_.data(), 0, folded_.size(), outside);
        while (at < folded_.size() && !is_subset({kept_[at].words, words_}, own)) {
            at = first_disjoint(folded_.data(), at + 1, folded_.size(), outside);
        }
        if (at == folded_.size()) {
            kept_.push_back(line);
            folded_.push_back(~outside);
        }
        ++looked_at_;
        if (looked_at_ % 16 == 0) watch.poll();
    }
}

void SetListBuilder::write(Watch& watch) {
    const auto lines = promising_ == nullptr ? sort_->items() : std::span<const Line>{kept_};
    if (list_.scores.capacity() == 0) {
        list_.scores.reserve(lines.size());
        list_.sets.reserve(lines.size() * words_);
    }
    while (written_ < lines.size()) {
        const Line& line = lines[written_++];
        list_.scores.push_back(line.score);
        list_.sets.insert(list_.sets.end(), line.words, line.words + words_);
        if (written_ % 1024 == 0) watch.poll();
    }
}

}  // namespace isthmus

#include "exact/child_sets.hpp"

namespace isthmus {

namespace {

/// Maximum number of variables with a separate share for the smallest sets.
constexpr std::size_t few = 50;

}  // namespace

ChildSets::ChildSets(const TableProblem& problem, Variable child)
    : problem_{problem},
      child_{child},
      exhaustive_{*problem.score, problem.bound->of(child), Candidates{problem.rules, child},
                  problem.slack} {}

std::size_t ChildSets::scored() const {
    return exhaustive_.scored() + (promising_ ? promising_->scored() : 0);
}

std::size_t ChildSets::first_share() const {
    return problem_.size() <= few ? *problem_.quota / 2 : 1;
}

void ChildSets::run(Watch& watch) {
    if (stage_ == Stage::listing) list_by_size(watch);
    if (stage_ == Stage::quota) use_quota(watch);
    if (stage_ == Stage::hurrying) list_in_a_hurry(watch);
    if (stage_ == Stage::finishing) finish(watch);
}

void ChildSets::begin_promising() {
    const std::size_t most = problem_.rules.max_parents();
    promising_.emplace(*problem_.score, problem_.bound->of(child_),
                       Candidates{problem_.rules, child_},
                       most >= problem_.size() ? std::nullopt : std::optional{most});
}

void ChildSets::list_by_size(Watch& watch) {
    while (true) {
        if (problem_.quota && !exhaustive_.in_step() && exhaustive_.scored() >= first_share()) {
            begin_promising();
            stage_ = Stage::quota;
            return;
        }
        if (exhaustive_.step(watch)) {
            complete_ = true;
            stage_ = Stage::finishing;
            return;
        }
    }
}

/// Scores promising sets; what they leave of the quota goes to listing by size.
void ChildSets::use_quota(Watch& watch) {
    while (true) {
        if (!before_) {
            if (scored() >= *problem_.quota) {
                stage_ = Stage::finishing;
                return;
            }
            before_ = promising_->scored();
            nothing_promising_ = false;
        }
        if (!nothing_promising_) {
            nothing_promising_ = promising_->step(watch) && promising_->scored() == *before_;
        }
        if (nothing_promising_ && exhaustive_.step(watch)) {
            complete_ = true;
            stage_ = Stage::finishing;
            return;
        }
        before_.reset();
    }
}

void ChildSets::hurry() {
    if (stage_ != Stage::listing && stage_ != Stage::quota) return;
    if (!promising_) begin_promising();
    nothing_promising_ = false;
    stage_ = Stage::hurrying;
}

void ChildSets::list_in_a_hurry(Watch& watch) {
    while (!nothing_promising_) nothing_promising_ = promising_->step(watch);
    while (!exhaustive_.step(watch)) {
    }
    complete_ = true;
    stage_ = Stage::finishing;
}

void ChildSets::stop() {
    if (stage_ != Stage::done) stage_ = Stage::finishing;
}

void ChildSets::finish(Watch& watch) {
    // The smallest set is always there, however early the end.
    if (exhaustive_.scored() == 0) exhaustive_.step(watch);
    if (!builder_) builder_ = list_builder();
    builder_->run(watch);
    list_ = builder_->take();
    stage_ = Stage::done;
}

SetListBuilder ChildSets::list_builder() const {
    return {problem_.size(), &exhaustive_, complete_ || !promising_ ? nullptr : &*promising_};
}

SetList ChildSets::so_far(Watch& watch) const {
    SetListBuilder builder = list_builder();
    builder.run(watch);
    return builder.take();
}

}  // namespace isthmus

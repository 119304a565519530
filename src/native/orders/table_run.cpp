#include "orders/table_run.hpp"

#include <stdexcept>
#include <utility>

namespace isthmus {

TableRun::TableRun(std::shared_ptr<const ScoreLines> table, Variables order)
    : order_{std::move(table), order} {}

void TableRun::check_done() const {
    if (!done()) throw std::logic_error{"the last job is not finished"};
}

void TableRun::reset(Variables order) {
    order_.reset(order);
    sweep_.reset();
    selection_.reset();
}

void TableRun::sweep(Variables firsts, std::size_t size) {
    check_done();
    sweep_.emplace(order_, firsts, size);
}

void TableRun::select() {
    check_done();
    selection_.emplace(order_);
}

bool TableRun::step(Watch& watch) {
    run_slice([&] {
        if (sweep_) {
            sweep_->run(watch);
            gained_ = sweep_->gained();
            sweep_.reset();
        }
        if (selection_) {
            selection_->run(watch);
            changed_ = selection_->changed();
            if (changed_) {
                const std::vector<Variable> sorted{selection_->sorted().begin(),
                                                   selection_->sorted().end()};
                order_.reset(sorted);
            }
            selection_.reset();
        }
        order_.settle(watch);
    });
    return done();
}

}  // namespace isthmus

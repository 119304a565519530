#include "greedy/class_rules.hpp"

#include <stdexcept>

namespace isthmus {

ClassRules::ClassRules(const Matrix<std::uint8_t>& required, const Matrix<std::uint8_t>& forbidden,
                       std::size_t max_parents)
    : size_{required.columns()},
      max_parents_{max_parents},
      must_{size_, size_},
      never_{size_, size_},
      open_{size_, size_} {
    if (required.rows() != size_ || forbidden.rows() != size_ || forbidden.columns() != size_) {
        throw std::invalid_argument{
            "required and forbidden must be square, with one row per variable"};
    }
    for (std::size_t a = 0; a < size_; ++a) {
        for (std::size_t b = 0; b < size_; ++b) {
            if (a == b) continue;
            if (required.row(a)[b] != 0) {
                must_.put(a, b);
                required_.emplace_back(a, b);
            }
            if (forbidden.row(a)[b] != 0) never_.put(a, b);
            if (forbidden.row(a)[b] == 0 || forbidden.row(b)[a] == 0) open_.put(a, b);
            any_ = any_ || required.row(a)[b] != 0 || forbidden.row(a)[b] != 0;
        }
    }
}

}  // namespace isthmus

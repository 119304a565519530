#include "bindings.hpp"
namespace isthmus {
void bind_xges(nb::module_&) {}
}

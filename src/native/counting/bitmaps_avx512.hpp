#pragma once

#include "counting/bitmap_variant.hpp"

namespace isthmus {

/// Operations on bitmaps with vectors of 512 bits that count their bits; null where the compiler or
/// the processor does not have them.
[[nodiscard]] const BitmapVariant* avx512_variant();

}  // namespace isthmus

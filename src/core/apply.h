// Masks on logits: whatever a bit does not allow becomes minus infinity.
#pragma once

#include <cstdint>
#include <span>

namespace mw {

// One row of logits of a given element size; `negative_infinity` is its bit pattern. Columns beyond the mask are
// disallowed. O(width / 32) where everything is allowed.
template <class Element>
void apply_mask(std::span<Element> logits, std::span<const uint32_t> mask, Element negative_infinity) {
  const size_t width = logits.size();
  for (size_t w = 0; w * 32 < width; ++w) {
    uint32_t denied = w < mask.size() ? ~mask[w] : 0xffffffffu;
    if (denied == 0) continue;
    const size_t base = w * 32, end = base + 32 < width ? base + 32 : width;
    if (denied == 0xffffffffu) {
      for (size_t i = base; i < end; ++i) logits[i] = negative_infinity;
      continue;
    }
    for (; denied != 0; denied &= denied - 1) {
      const size_t i = base + static_cast<size_t>(__builtin_ctz(denied));
      if (i < end) logits[i] = negative_infinity;
    }
  }
}

}  // namespace mw

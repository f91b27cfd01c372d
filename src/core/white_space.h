// White space between JSON tokens, by policy (DESIGN, semantics).
//
// bounded: nothing, one space, or 1-2 newlines followed by at most 20 blanks (spaces or tabs). A state is a small number
// that fits into a machine's state word; 0 = nothing read yet.
#pragma once

#include <cstdint>

namespace mw {

enum class Whitespace : int { Compact = 0, Bounded = 1, Any = 2 };

inline constexpr uint32_t kSpaceDead = 0xffffffffu;
inline constexpr uint32_t kSpaceOver = 0xff;  // no more white space is taken here
inline constexpr uint32_t kMaxBlanks = 20;

inline bool is_space(uint8_t b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; }

// bounded: 1 = one space; 2 + 21 * (newlines - 1) + blanks otherwise.
inline uint32_t next_space(Whitespace policy, uint32_t state, uint8_t b) {
  if (policy == Whitespace::Compact || state == kSpaceOver || !is_space(b)) return kSpaceDead;
  if (policy == Whitespace::Any) return state;
  if (b == '\r') return kSpaceDead;
  if (state == 0) return b == ' ' ? 1 : b == '\n' ? 2 : kSpaceDead;
  if (state == 1) return kSpaceDead;
  const uint32_t second = (state - 2) / (kMaxBlanks + 1), blanks = (state - 2) % (kMaxBlanks + 1);
  if (b == '\n') return second == 0 && blanks == 0 ? 2 + kMaxBlanks + 1 : kSpaceDead;
  return blanks < kMaxBlanks ? state + 1 : kSpaceDead;
}

inline bool space_may_follow(Whitespace policy, uint32_t state) {
  if (policy == Whitespace::Compact || state == kSpaceOver) return false;
  if (policy == Whitespace::Any) return true;
  return state == 0 || (state > 1 && (state - 2) % (kMaxBlanks + 1) < kMaxBlanks);
}

}  // namespace mw

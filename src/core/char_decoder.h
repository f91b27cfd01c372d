// Characters out of bytes, one byte at a time: plain UTF-8 (RFC 3629) and the inside of a JSON string (RFC 8259, 7).
//
// What has been read of a character is a number of 20 bits, so that it fits beside counters in a machine's state word:
// 3 bits of mode and 17 of payload. No lone surrogates, no overlong forms.
#pragma once

#include <cstdint>

namespace mw {

enum class Mode : uint32_t { Start = 0, Utf8Need1, Utf8Need2, Utf8Need3, Backslash, Hex, LowSurrogate };

using Sub = uint32_t;  // what has been read of a character; 0 between characters
inline constexpr uint32_t kSubBits = 20;
inline constexpr Sub kSubMask = (1u << kSubBits) - 1;

inline Sub make_sub(Mode m, uint32_t payload) { return (static_cast<uint32_t>(m) << 17) | payload; }
inline Mode sub_mode(Sub s) { return static_cast<Mode>(s >> 17); }
inline uint32_t sub_payload(Sub s) { return s & 0x1ffffu; }

struct Decoded {
  enum Kind : uint8_t { Dead, Partial, Char, Quote } kind;
  uint32_t value = 0;  // Partial: the new Sub; Char: the code point
};

inline constexpr uint32_t kLastCodePoint = 0x10ffff;

Decoded decode_utf8(Sub sub, uint8_t b);
// any_escapes: every escape of RFC 8259; else only those that a character cannot do without (\" \\ \b \f \n \r \t,
// \u00XX for the other control characters).
Decoded decode_json(Sub sub, uint8_t b, bool any_escapes);

// The code points that can still come out of a partial character, as up to 2 ranges; returns their number.
// Not for Backslash and, with minimal escapes, Hex: see partial_is_live.
struct CharSpan {
  uint32_t lo, hi;
};
int partial_ranges(Sub sub, CharSpan out[2]);

inline bool is_control(uint32_t cp) { return cp < 0x20; }
inline bool needs_hex_escape(uint32_t cp) {
  return is_control(cp) && cp != 8 && cp != 9 && cp != 10 && cp != 12 && cp != 13;
}

// Whether some character with any_live_in(lo, hi) can still come out of `sub`.
template <class AnyLive>
bool partial_is_live(Sub sub, bool any_escapes, AnyLive any_live_in) {
  const Mode mode = sub_mode(sub);
  if (mode == Mode::Backslash) {
    if (any_escapes) return any_live_in(0u, kLastCodePoint);
    return any_live_in(0u, 0x1fu) || any_live_in('"', '"') || any_live_in('\\', '\\');
  }
  if (mode == Mode::Hex && !any_escapes) {  // \u00XX with few values: try them all
    const uint32_t digits = sub_payload(sub) >> 12, value = sub_payload(sub) & 0xfffu;
    for (uint32_t cp = 0; cp < 0x20; ++cp)
      if (needs_hex_escape(cp) && (cp >> (4 * (4 - digits))) == value && any_live_in(cp, cp)) return true;
    return false;
  }
  CharSpan r[2];
  const int n = partial_ranges(sub, r);
  for (int i = 0; i < n; ++i)
    if (any_live_in(r[i].lo, r[i].hi)) return true;
  return false;
}

// Bytes that finish the character of which `sub` has been read: the shortest way to any, or the way to this one.
uint32_t bytes_to_finish(Sub sub);
uint32_t bytes_to_finish(Sub sub, uint32_t code_point);
// Calls f(lo, hi, bytes) for the code points that can come out of `sub`, with the bytes that they still take: together all
// of them, where there are several ways the shortest or near it.
template <class F>
void each_finish(Sub sub, bool any_escapes, F f) {
  const Mode mode = sub_mode(sub);
  if (mode == Mode::Backslash) {
    f('"', '"', 1u);
    f('\\', '\\', 1u);
    for (uint32_t cp = 0; cp < 0x20; ++cp) f(cp, cp, bytes_to_finish(sub, cp));
    if (!any_escapes) return;
    f(0u, 0xffffu, 5u);
    f(0x10000u, kLastCodePoint, 11u);
    return;
  }
  if (mode == Mode::Hex && !any_escapes) {
    const uint32_t digits = sub_payload(sub) >> 12, value = sub_payload(sub) & 0xfffu;
    for (uint32_t cp = 0; cp < 0x20; ++cp)
      if (needs_hex_escape(cp) && (cp >> (4 * (4 - digits))) == value) f(cp, cp, 4 - digits);
    return;
  }
  CharSpan r[2];
  const int n = partial_ranges(sub, r);
  for (int i = 0; i < n; ++i) f(r[i].lo, r[i].hi, bytes_to_finish(sub, r[i].lo));
}

// Bytes of a character inside a JSON string, escaped only where it must be.
uint32_t json_bytes(uint32_t code_point);

// A partial character from which the same bytes go on, among a few dozen: for where it does not matter which it becomes.
Sub representative(Sub sub, bool any_escapes);

// UTF-8 of a code point; returns the number of bytes.
int encode_utf8(uint32_t cp, uint8_t out[4]);

}  // namespace mw

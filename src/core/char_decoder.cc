#include "char_decoder.h"

namespace mw {
namespace {

constexpr Decoded kDeadEnd{Decoded::Dead, 0};

Decoded partial(Mode m, uint32_t payload) { return {Decoded::Partial, make_sub(m, payload)}; }

int hex_value(uint8_t b) {
  if (b >= '0' && b <= '9') return b - '0';
  if (b >= 'a' && b <= 'f') return b - 'a' + 10;
  if (b >= 'A' && b <= 'F') return b - 'A' + 10;
  return -1;
}

Decoded lead_byte(uint8_t b) {
  if (b < 0x80) return {Decoded::Char, b};
  if (b >= 0xc2 && b <= 0xdf) return partial(Mode::Utf8Need1, b & 0x1fu);
  if (b >= 0xe0 && b <= 0xef) return partial(Mode::Utf8Need2, b & 0x0fu);
  if (b >= 0xf0 && b <= 0xf4) return partial(Mode::Utf8Need3, b & 0x07u);
  return kDeadEnd;
}

// In Utf8Need2 a payload below 16 is the lead byte of three-byte form; 16 and more is a four-byte form with one
// continuation byte read: the two never meet, because four-byte forms start at 0x10000 >> 12.
Decoded continuation(Mode mode, uint32_t part, uint8_t b) {
  if ((b & 0xc0u) != 0x80u) return kDeadEnd;
  const uint32_t next = (part << 6) | (b & 0x3fu);
  if (mode == Mode::Utf8Need1) return {Decoded::Char, next};
  if (mode == Mode::Utf8Need2) {
    if (part == 0 && next < 0x20) return kDeadEnd;                     // overlong
    if (part == 0x0d && next >= (0xd800u >> 6)) return kDeadEnd;       // surrogates
    return partial(Mode::Utf8Need1, next);
  }
  if (next < 0x10 || next > 0x10f) return kDeadEnd;  // overlong, past U+10FFFF
  return partial(Mode::Utf8Need2, next);
}

Decoded after_backslash(uint8_t b, bool any_escapes) {
  switch (b) {
    case '"': case '\\': return {Decoded::Char, b};
    case '/': return any_escapes ? Decoded{Decoded::Char, '/'} : kDeadEnd;
    case 'b': return {Decoded::Char, 8};
    case 'f': return {Decoded::Char, 12};
    case 'n': return {Decoded::Char, 10};
    case 'r': return {Decoded::Char, 13};
    case 't': return {Decoded::Char, 9};
    case 'u': return partial(Mode::Hex, 0);
    default: return kDeadEnd;
  }
}

Decoded hex_digit(uint32_t payload, uint8_t b, bool any_escapes) {
  const int v = hex_value(b);
  if (v < 0) return kDeadEnd;
  const uint32_t digits = (payload >> 12) + 1, value = ((payload & 0xfffu) << 4) | static_cast<uint32_t>(v);
  if (digits < 4) {
    if (!any_escapes && (digits < 3 ? value != 0 : value > 1)) return kDeadEnd;
    if (digits == 2 && value >= 0xdc && value <= 0xdf) return kDeadEnd;  // a low surrogate cannot come first
    return partial(Mode::Hex, (digits << 12) | value);
  }
  if (!any_escapes) return needs_hex_escape(value) ? Decoded{Decoded::Char, value} : kDeadEnd;
  if (value >= 0xd800 && value <= 0xdbff) return partial(Mode::LowSurrogate, (value - 0xd800) << 7);
  return {Decoded::Char, value};
}

// Progress through `\uDCxx` after a high surrogate: 0 \, 1 u, 2 d, 3 c-f, 4..7 that digit, 8..71 that and one more.
Decoded low_surrogate(uint32_t payload, uint8_t b) {
  const uint32_t high = payload >> 7, at = payload & 0x7fu;
  const auto to = [&](uint32_t p) { return partial(Mode::LowSurrogate, (high << 7) | p); };
  if (at == 0) return b == '\\' ? to(1) : kDeadEnd;
  if (at == 1) return b == 'u' ? to(2) : kDeadEnd;
  if (at == 2) return b == 'd' || b == 'D' ? to(3) : kDeadEnd;
  const int v = hex_value(b);
  if (v < 0) return kDeadEnd;
  const auto d = static_cast<uint32_t>(v);
  if (at == 3) return d >= 12 ? to(4 + d - 12) : kDeadEnd;
  if (at < 8) return to(8 + (((at - 4) << 4) | d));
  return {Decoded::Char, 0x10000u + (high << 10) + (((at - 8) << 4) | d)};
}

}  // namespace

Decoded decode_utf8(Sub sub, uint8_t b) {
  const Mode mode = sub_mode(sub);
  return mode == Mode::Start ? lead_byte(b) : continuation(mode, sub_payload(sub), b);
}

Decoded decode_json(Sub sub, uint8_t b, bool any_escapes) {
  const Mode mode = sub_mode(sub);
  switch (mode) {
    case Mode::Start:
      if (b == '"') return {Decoded::Quote, 0};
      if (b == '\\') return partial(Mode::Backslash, 0);
      if (is_control(b)) return kDeadEnd;
      return lead_byte(b);
    case Mode::Backslash: return after_backslash(b, any_escapes);
    case Mode::Hex: return hex_digit(sub_payload(sub), b, any_escapes);
    case Mode::LowSurrogate: return low_surrogate(sub_payload(sub), b);
    default: return continuation(mode, sub_payload(sub), b);
  }
}

int partial_ranges(Sub sub, CharSpan out[2]) {
  const uint32_t p = sub_payload(sub);
  switch (sub_mode(sub)) {
    case Mode::Utf8Need1: out[0] = {p << 6, (p << 6) | 0x3f}; return 1;
    case Mode::Utf8Need2: {
      out[0] = {p << 12, (p << 12) | 0xfff};
      if (p == 0) out[0].lo = 0x800;
      return 1;
    }
    case Mode::Utf8Need3: {
      out[0] = {p << 18, (p << 18) | 0x3ffff};
      if (p == 0) out[0].lo = 0x10000;
      if (out[0].hi > kLastCodePoint) out[0].hi = kLastCodePoint;
      return 1;
    }
    case Mode::Hex: {
      const uint32_t shift = 4 * (4 - (p >> 12)), value = p & 0xfffu;
      const uint32_t lo = value << shift, hi = lo | ((1u << shift) - 1);
      int n = 0;
      out[n++] = {lo, hi};  // lone surrogates in it are nobody's live characters
      if (hi >= 0xd800 && lo <= 0xdbff) {
        const uint32_t first = lo < 0xd800 ? 0xd800 : lo, last = hi > 0xdbff ? 0xdbff : hi;
        out[n++] = {0x10000 + ((first - 0xd800) << 10), 0x10000 + ((last - 0xd800) << 10) + 0x3ff};
      }
      return n;
    }
    case Mode::LowSurrogate: {
      const uint32_t base = 0x10000 + ((p >> 7) << 10), at = p & 0x7fu;
      if (at < 4) out[0] = {base, base + 0x3ff};
      else if (at < 8) out[0] = {base + ((at - 4) << 8), base + ((at - 4) << 8) + 0xff};
      else out[0] = {base + ((at - 8) << 4), base + ((at - 8) << 4) + 0xf};
      return 1;
    }
    default: out[0] = {0, kLastCodePoint}; return 1;
  }
}

uint32_t bytes_to_finish(Sub sub) {
  const uint32_t p = sub_payload(sub);
  switch (sub_mode(sub)) {
    case Mode::Start: return 0;
    case Mode::Utf8Need1: return 1;
    case Mode::Utf8Need2: return 2;
    case Mode::Utf8Need3: return 3;
    case Mode::Backslash: return 1;
    case Mode::Hex: {  // a high surrogate wants six bytes more
      const uint32_t digits = p >> 12, value = p & 0xfffu;
      const bool high = digits >= 2 && (value >> (4 * (digits - 2))) >= 0xd8 && (value >> (4 * (digits - 2))) <= 0xdb;
      return 4 - digits + (high ? 6 : 0);
    }
    case Mode::LowSurrogate: {
      const uint32_t at = p & 0x7fu;
      return at < 4 ? 6 - at : at < 8 ? 2 : 1;
    }
  }
  return 0;
}

uint32_t bytes_to_finish(Sub sub, uint32_t code_point) {
  const uint32_t surrogate = code_point > 0xffff ? 6 : 0;
  switch (sub_mode(sub)) {
    case Mode::Backslash: {
      const bool named = code_point == '"' || code_point == '\\' || (is_control(code_point) && !needs_hex_escape(code_point));
      return named ? 1 : 5 + surrogate;
    }
    case Mode::Hex: return 4 - (sub_payload(sub) >> 12) + surrogate;
    default: return bytes_to_finish(sub);
  }
}

uint32_t json_bytes(uint32_t code_point) {
  if (code_point == '"' || code_point == '\\') return 2;
  if (is_control(code_point)) return needs_hex_escape(code_point) ? 6 : 2;
  return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

Sub representative(Sub sub, bool any_escapes) {
  const Mode mode = sub_mode(sub);
  const uint32_t p = sub_payload(sub);
  switch (mode) {
    case Mode::Utf8Need1: return make_sub(mode, 2);
    case Mode::Utf8Need2: return p == 0 || p == 0x0d ? sub : make_sub(mode, p < 16 ? 1 : 16);
    case Mode::Utf8Need3: return p == 0 || p == 4 ? sub : make_sub(mode, 1);
    case Mode::Hex: {
      if (!any_escapes) return sub;
      const uint32_t digits = p >> 12, value = p & 0xfffu;
      if (digits == 0) return sub;
      const uint32_t low = digits == 1 ? 0xdu : digits == 2 ? 0xd8u : 0xd80u, high = digits == 1 ? 0xdu : digits == 2 ? 0xdbu : 0xdbfu;
      return make_sub(mode, (digits << 12) | (value >= low && value <= high ? low : 0));
    }
    case Mode::LowSurrogate: {
      const uint32_t at = p & 0x7fu;
      return make_sub(mode, at < 4 ? at : at < 8 ? 4u : 8u);
    }
    default: return sub;
  }
}

int encode_utf8(uint32_t cp, uint8_t out[4]) {
  const auto byte = [](uint32_t v) { return static_cast<uint8_t>(v); };
  if (cp < 0x80) {
    out[0] = byte(cp);
    return 1;
  }
  if (cp < 0x800) {
    out[0] = byte(0xc0 | (cp >> 6));
    out[1] = byte(0x80 | (cp & 0x3f));
    return 2;
  }
  if (cp < 0x10000) {
    out[0] = byte(0xe0 | (cp >> 12));
    out[1] = byte(0x80 | ((cp >> 6) & 0x3f));
    out[2] = byte(0x80 | (cp & 0x3f));
    return 3;
  }
  out[0] = byte(0xf0 | (cp >> 18));
  out[1] = byte(0x80 | ((cp >> 12) & 0x3f));
  out[2] = byte(0x80 | ((cp >> 6) & 0x3f));
  out[3] = byte(0x80 | (cp & 0x3f));
  return 4;
}

}  // namespace mw

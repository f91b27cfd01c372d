// What the native tests share: a check that ends the program, random numbers, regex programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../src/core/regex_dfa.h"

#define CHECK(cond, ...)                                              \
  do {                                                                \
    if (!(cond)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
      std::fprintf(stderr, __VA_ARGS__);                              \
      std::fprintf(stderr, "\n");                                     \
      std::exit(1);                                                   \
    }                                                                 \
  } while (false)

namespace support {

using Rng = std::mt19937;

inline int64_t roll(Rng& rng, int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); }
inline bool chance(Rng& rng, int percent) { return roll(rng, 100) < percent; }
template <class List>
const auto& pick(Rng& rng, const List& list) {
  return list[static_cast<size_t>(roll(rng, static_cast<int64_t>(std::size(list))))];
}

// A text as it can be read in a message: what is not printable ASCII in hexadecimal.
inline std::string show(std::string_view text) {
  std::string out;
  char hex[8];
  for (const char ch : text) {
    const auto b = static_cast<unsigned char>(ch);
    if (b >= 0x20 && b < 0x7f) {
      out += ch;
      continue;
    }
    std::snprintf(hex, sizeof hex, "<%02x>", b);
    out += hex;
  }
  return out;
}

// ---- regex programs in reverse Polish, see RegexDfa::from_program

namespace rx {

using Program = std::vector<int64_t>;

inline Program chars(const std::vector<std::pair<int64_t, int64_t>>& ranges) {
  Program p{2, static_cast<int64_t>(ranges.size())};
  for (const auto& [lo, hi] : ranges) p.insert(p.end(), {lo, hi});
  return p;
}
inline Program group(int64_t code, const std::vector<Program>& parts) {
  Program p;
  for (const Program& x : parts) p.insert(p.end(), x.begin(), x.end());
  p.insert(p.end(), {code, static_cast<int64_t>(parts.size())});
  return p;
}
inline Program cat(const std::vector<Program>& parts) { return group(3, parts); }
inline Program alt(const std::vector<Program>& parts) { return group(4, parts); }
inline Program both(const std::vector<Program>& parts) { return group(6, parts); }
inline Program rep(Program p, int64_t lo, int64_t hi = -1) {
  p.insert(p.end(), {5, lo, hi});
  return p;
}
inline Program negate(Program p) {
  p.push_back(7);
  return p;
}
inline Program one(int64_t code_point) { return chars({{code_point, code_point}}); }
inline Program lit(std::u32string_view text) {
  std::vector<Program> parts;
  for (const char32_t c : text) parts.push_back(one(c));
  return cat(parts);
}
inline Program any() { return chars({{0, 0xd7ff}, {0xe000, 0x10ffff}}); }
inline Program all() { return rep(any(), 0); }
inline Program digits(int64_t lo, int64_t hi = -1) { return rep(chars({{'0', '9'}}), lo, hi); }

inline std::shared_ptr<mw::RegexDfa> compile(const Program& p) {
  std::string error;
  auto dfa = mw::RegexDfa::from_program(p, &error);
  CHECK(dfa != nullptr, "%s", error.c_str());
  return dfa;
}

}  // namespace rx
}  // namespace support

#include "restrict.h"

#include <algorithm>

namespace mw {
namespace {

constexpr int64_t kChars = 2, kCat = 3, kRepeat = 5, kAnd = 6, kNot = 7;
constexpr int64_t kLast = 0x10ffff;

bool inside(int64_t lo, int64_t hi, std::span<const std::pair<uint32_t, uint32_t>> ranges) {
  for (const auto& [first, last] : ranges)
    if (lo >= first && lo <= last) {
      if (hi <= last) return true;
      lo = int64_t{last} + 1;
    }
  return false;
}

}  // namespace

std::optional<std::vector<int64_t>> restrict_program(std::span<const int64_t> program,
                                                     std::span<const std::pair<uint32_t, uint32_t>> lacking) {
  if (lacking.empty()) return std::nullopt;
  std::vector<int64_t> out;
  bool changed = false, boolean = false;
  for (size_t i = 0; i < program.size();) {
    const int64_t op = program[i];
    size_t length = 1;
    if (op == kChars) length = 2 + 2 * static_cast<size_t>(program[i + 1]);
    else if (op == kRepeat) length = 3;
    else if (op >= kCat && op != kNot) length = 2;
    bool empty = op == kChars;
    for (size_t j = i + 2; empty && j + 1 < i + length; j += 2) empty = inside(program[j], program[j + 1], lacking);
    boolean = boolean || op == kAnd || op == kNot;
    if (empty) out.push_back(0);
    else out.insert(out.end(), program.begin() + static_cast<std::ptrdiff_t>(i), program.begin() + static_cast<std::ptrdiff_t>(i + length));
    changed = changed || empty;
    i += length;
  }
  if (boolean) {
    std::vector<int64_t> rest;
    int64_t from = 0;
    for (const auto& [first, last] : lacking) {
      if (first > from) rest.insert(rest.end(), {from, int64_t{first} - 1});
      from = int64_t{last} + 1;
    }
    if (from <= kLast) rest.insert(rest.end(), {from, kLast});
    out.insert(out.end(), {kChars, static_cast<int64_t>(rest.size() / 2)});
    out.insert(out.end(), rest.begin(), rest.end());
    out.insert(out.end(), {kRepeat, 0, -1, kAnd, 2});
  } else if (!changed) {
    return std::nullopt;
  }
  return out;
}

}  // namespace mw

#include "regex_count.h"

#include <algorithm>
#include <numeric>

#include "char_decoder.h"

namespace mw {
namespace {

constexpr uint64_t kFirst = 8;  // counts are taken a little further than asked for, since the next question is near

// Sums and products that stop at a bound below 2^32.
uint64_t sum_up_to(uint64_t most, uint64_t a, uint64_t b) { return std::min(most, a + b); }
uint64_t product_up_to(uint64_t most, uint64_t a, uint32_t b) { return std::min(most, std::min(most, a) * b); }
constexpr uint64_t kMost = (uint64_t{1} << 32) - 1;

}  // namespace

const std::vector<RegexDfa::Successor>& StringCounts::successors(DfaState s) {
  if (class_bytes_.empty()) class_bytes_ = dfa_.class_bytes();
  dfa_.successors(s, successors_);
  return successors_;
}

bool StringCounts::exceeds(DfaState s, uint64_t n) {
  const std::scoped_lock lock(mutex_);
  Known& known = known_[s];
  if (known.least <= n && !known.exact) known = count(s, std::min(kMost, std::max(2 * n, kFirst)));
  return known.least > n;
}

bool StringCounts::infinite(DfaState s) {
  const std::scoped_lock lock(mutex_);
  const auto known = infinite_.find(s);
  if (known != infinite_.end()) return known->second;
  return infinite_[s] = has_circle(s);
}

// Every state can be finished, so there are infinitely many iff the states go round in a circle somewhere: a depth-first
// search comes to a state that it has not left yet.
bool StringCounts::has_circle(DfaState s) {
  constexpr size_t kMostStates = 4096;
  struct Frame {
    DfaState state;
    std::vector<RegexDfa::Successor> next;
  };
  std::unordered_map<DfaState, bool> left;  // false: on the way
  std::vector<Frame> way;
  const auto enter = [&](DfaState at) {
    left[at] = false;
    way.push_back({at, successors(at)});
  };
  enter(s);
  while (!way.empty() && left.size() < kMostStates) {
    Frame& top = way.back();
    if (top.next.empty()) {
      left[top.state] = true;
      way.pop_back();
      continue;
    }
    const DfaState to = top.next.back().next;
    top.next.pop_back();
    const auto it = left.find(to);
    if (it == left.end()) enter(to);
    else if (!it->second) return true;
  }
  return false;
}

// The first code points that lead on, with where they lead to.
std::vector<std::pair<uint32_t, DfaState>> StringCounts::steps(DfaState s, size_t most) {
  uint64_t total = 0;
  for (const auto& to : successors(s)) {
    const auto& bytes = class_bytes_[to.cls];
    total += std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  }
  std::vector<std::pair<uint32_t, DfaState>> out;
  for (uint32_t c = 0; c <= kLastCodePoint && out.size() < std::min<uint64_t>(total, most); ++c)
    if (const DfaState to = dfa_.next(s, c); to != 0) out.emplace_back(c, to);
  return out;
}

std::vector<std::string> StringCounts::shortest(DfaState s, size_t most) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> out;
  std::vector<std::pair<std::string, DfaState>> level{{"", s}}, next;
  while (!level.empty() && out.size() < most) {
    next.clear();
    for (const auto& [text, at] : level) {
      if (dfa_.accepting(at) && out.size() < most) out.push_back(text);
      if (next.size() >= most) continue;  // each of those can be finished
      for (const auto& [c, to] : steps(at, most)) {
        uint8_t bytes[4];
        const int n = encode_utf8(c, bytes);
        next.emplace_back(text + std::string(bytes, bytes + n), to);
      }
    }
    level.swap(next);
  }
  return out;
}

// Level by level, by length. Every state can be finished, so each of the strings of one length stands for a string more.
StringCounts::Known StringCounts::count(DfaState s, uint64_t most) {
  uint64_t accepted = 0;
  Level level{{s, 1}}, next;
  while (!level.empty()) {
    uint64_t open = 0;
    for (const auto& [at, n] : level) open = sum_up_to(most, open, n);
    if (accepted + open >= most) return {most, false};
    next.clear();
    for (const auto& [at, n] : level) {
      if (dfa_.accepting(at)) accepted += n;
      for (const auto& to : successors(at)) {
        const auto& bytes = class_bytes_[to.cls];
        uint64_t& there = next[to.next];
        there = sum_up_to(most, there, product_up_to(most, n, std::accumulate(bytes.begin(), bytes.end(), 0u)));
      }
    }
    if (accepted >= most) return {most, false};
    level.swap(next);
  }
  return {accepted, true};
}

uint32_t StringCounts::bytes_beyond(DfaState s, uint64_t n) {
  const std::scoped_lock lock(mutex_);
  Within& known = within_[s];
  if (!known.complete && (known.total.empty() || known.total.back() <= n))
    known = count_within(s, std::min(kMost, std::max(2 * n, kFirst)));
  const auto it = std::upper_bound(known.total.begin(), known.total.end(), n);
  return it == known.total.end() ? kNever : static_cast<uint32_t>(it - known.total.begin());
}

// Looks only where there is one, so the way is not much longer than the answer.
std::vector<std::string> StringCounts::within(DfaState s, uint32_t bytes) {
  struct At {
    DfaState state;
    std::string text;
    uint32_t left;
  };
  std::vector<std::string> out;
  std::vector<At> stack{{s, "", bytes}};
  std::vector<RegexDfa::Successor> next;
  std::vector<uint32_t> code_points;
  while (!stack.empty()) {
    const At at = std::move(stack.back());
    stack.pop_back();
    if (dfa_.accepting(at.state)) out.push_back(at.text);
    dfa_.successors(at.state, next);
    for (const auto& to : next) {
      const uint32_t least = bytes_beyond(to.next, 0);
      if (least >= at.left) continue;
      const uint32_t room = at.left - least;
      dfa_.code_points(to.cls, room < 2 ? 0x7f : room < 3 ? 0x7ff : room < 4 ? 0xffff : kLastCodePoint, code_points);
      for (uint32_t cp : code_points) {
        if (json_bytes(cp) > room) continue;
        uint8_t utf8[4];
        const int n = encode_utf8(cp, utf8);
        std::string text = at.text;
        for (int i = 0; i < n; ++i) text += static_cast<char>(utf8[i]);
        stack.push_back({to.next, std::move(text), at.left - json_bytes(cp)});
      }
    }
  }
  return out;
}

StringCounts::Within StringCounts::count_within(DfaState s, uint64_t most) {
  constexpr size_t kLongest = std::tuple_size_v<RegexDfa::ClassBytes>;
  std::vector<Level> ahead(kLongest);  // by bytes, modulo their number
  ahead[0][s] = 1;
  Within out;
  uint64_t accepted = 0;
  for (size_t bytes = 0, empty = 0; empty < kLongest; ++bytes) {
    Level level;
    level.swap(ahead[bytes % kLongest]);
    empty = level.empty() ? empty + 1 : 0;
    for (const auto& [at, n] : level) {
      if (dfa_.accepting(at)) accepted = sum_up_to(most, accepted, n);
      for (const auto& to : successors(at)) {
        const auto& sizes = class_bytes_[to.cls];
        for (size_t k = 1; k < kLongest; ++k) {
          if (sizes[k] == 0) continue;
          uint64_t& there = ahead[(bytes + k) % kLongest][to.next];
          there = sum_up_to(most, there, product_up_to(most, n, sizes[k]));
        }
      }
    }
    out.total.push_back(accepted);
    if (accepted >= most) return out;
  }
  out.complete = true;
  return out;
}

}  // namespace mw

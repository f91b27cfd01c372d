#include "code.h"

#include <algorithm>
#include <bitset>

#include "../char_decoder.h"

namespace mw::lark {
namespace {

// Cuts a range of code points into ranges of byte sequences: first at the lengths of UTF-8, then so that behind a byte
// with several values all continuation bytes are free.
void add_sequences(uint32_t lo, uint32_t hi, std::vector<std::vector<std::pair<uint8_t, uint8_t>>>& out) {
  if (lo >= kSpecials) return out.push_back({{0xff, 0xff}, {static_cast<uint8_t>(lo - kSpecials), static_cast<uint8_t>(hi - kSpecials)}});
  for (const uint32_t last : {0x7fu, 0x7ffu, 0xffffu})
    if (lo <= last && last < hi) {
      add_sequences(lo, last, out);
      add_sequences(last + 1, hi, out);
      return;
    }
  if (hi >= 0x80)
    for (uint32_t i = 1; i < 4; ++i) {
      const uint32_t m = (1u << (6 * i)) - 1;
      if ((lo & ~m) == (hi & ~m)) break;
      if ((lo & m) != 0) {
        add_sequences(lo, lo | m, out);
        add_sequences((lo | m) + 1, hi, out);
        return;
      }
      if ((hi & m) != m) {
        add_sequences(lo, (hi & ~m) - 1, out);
        add_sequences(hi & ~m, hi, out);
        return;
      }
    }
  uint8_t a[4], b[4];
  const int n = encode_utf8(lo, a);
  encode_utf8(hi, b);
  auto& sequence = out.emplace_back();
  for (int i = 0; i < n; ++i) sequence.push_back({a[i], b[i]});
}

CodeRanges without(const CodeRanges& ranges, const CodeRanges& lacking) {
  CodeRanges out;
  for (auto [lo, hi] : ranges) {
    for (const auto& [from, to] : lacking) {
      if (to < lo || from > hi) continue;
      if (from > lo) out.push_back({lo, from - 1});
      lo = to + 1;
      if (lo > hi) break;
    }
    if (lo <= hi) out.push_back({lo, hi});
  }
  return out;
}

}  // namespace

uint32_t Utf8Automata::intern(std::vector<Edge> edges) {
  const auto [it, fresh] = index_.try_emplace(edges, static_cast<uint32_t>(nodes_.size()));
  if (fresh) nodes_.push_back(std::move(edges));
  return it->second;
}

uint32_t Utf8Automata::make(std::span<const Sequence> sequences, size_t depth) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < sequences.size();) {
    const auto at = sequences[i][depth];
    size_t end = i;
    while (end < sequences.size() && sequences[end][depth] == at) ++end;
    const uint32_t next = sequences[i].size() == depth + 1 ? 0 : make(sequences.subspan(i, end - i), depth + 1);
    if (!edges.empty() && edges.back().next == next && edges.back().hi + 1 == at.first) edges.back().hi = at.second;
    else edges.push_back({at.first, at.second, next});
    i = end;
  }
  return intern(std::move(edges));
}

uint32_t Utf8Automata::add(const CodeRanges& ranges) {
  std::vector<Sequence> sequences;
  for (const auto& [lo, hi] : ranges) add_sequences(lo, hi, sequences);
  return make(sequences, 0);
}

Code::Code(std::vector<Instr> code, const std::vector<CodeRanges>& classes, std::vector<int32_t> behinds,
           const CodeRanges& lacking)
    : code_(std::move(code)), behinds_(std::move(behinds)) {
  for (const CodeRanges& ranges : classes) roots_.push_back(utf8_.add(without(ranges, lacking)));
  anchored_ = std::any_of(code_.begin(), code_.end(), [](const Instr& i) { return i.op == Op::Begin; });
  find_classes();
  fill_next();
  find_hopes();
  CodeRanges any = without({{0, 0xD7FF}, {0xE000, 0x10FFFF}}, lacking);
  for (const CodeRanges& ranges : classes)
    if (!ranges.empty() && ranges.back().second >= kSpecials) any.push_back(ranges.back());
  any_ = utf8_.add(any);  // after the classes of bytes, which it does not matter to
}

void Code::find_classes() {
  std::bitset<257> starts;  // bytes that some edge begins at, or ends before
  for (uint32_t n = 0; n < utf8_.size(); ++n)
    for (const auto& e : utf8_.edges(n)) {
      starts.set(e.lo);
      starts.set(e.hi + 1u);
    }
  for (uint32_t b = 0; b < 256; ++b) {
    if (b == 0 || starts.test(b)) {
      byte_of_.push_back(static_cast<uint8_t>(b));
      ++class_count_;
    }
    class_of_[b] = static_cast<uint8_t>(class_count_ - 1);
  }
}

void Code::fill_next() {
  next_.assign(utf8_.size() * class_count_, Utf8Automata::kNone);
  for (uint32_t n = 0; n < utf8_.size(); ++n)
    for (const auto& e : utf8_.edges(n))
      for (uint32_t c = class_of_[e.lo]; c <= class_of_[e.hi]; ++c) next_[size_t{n} * class_count_ + c] = e.next;
}

template <class F>
void Code::each_successor(uint32_t pc, F f) const {
  const Instr& i = code_[pc];
  switch (i.op) {
    case Op::Match: break;
    case Op::Split: f(static_cast<uint32_t>(i.a)); f(static_cast<uint32_t>(i.b)); break;
    case Op::Jump: f(static_cast<uint32_t>(i.a)); break;
    case Op::LoopEnd: f(static_cast<uint32_t>(i.b)); f(pc + 1); break;
    case Op::Char: if (!utf8_.edges(first(pc)).empty()) f(pc + 1); break;
    default: f(pc + 1);
  }
}

void Code::find_hopes() {
  asks_.assign(code_.size(), 0);
  hopeful_.assign(code_.size(), false);
  terminals_.assign(code_.size(), kNoTerminal);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t pc = static_cast<uint32_t>(code_.size()); pc-- > 0;) {
      uint64_t asks = code_[pc].op == Op::Behind ? uint64_t{1} << code_[pc].a : 0;
      bool hope = code_[pc].op == Op::Match;
      uint32_t terminal = hope ? static_cast<uint32_t>(code_[pc].a) : kNoTerminal;
      each_successor(pc, [&](uint32_t to) {
        if (terminal == kNoTerminal) terminal = terminals_[to];
        asks |= asks_[to];
        hope = hope || hopeful_[to];
      });
      if (asks == asks_[pc] && hope == hopeful_[pc] && terminal == terminals_[pc]) continue;
      terminals_[pc] = terminal;
      asks_[pc] = asks;
      hopeful_[pc] = hope;
      changed = true;
    }
  }
}

}  // namespace mw::lark

// Terminals as programs of an ordered backtracking machine, in the manner of Pike's virtual machine (R. Cox, "Regular
// Expression Matching: the Virtual Machine Approach", 2009): the order of threads is the order in which a backtracking
// engine would try them. Character classes are read byte by byte, through automata of their UTF-8.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace mw::lark {

enum class Op : int32_t {
  Char,     // a character of class a, then the next instruction
  Split,    // a preferred to b
  Jump,     // to a
  Match,    // terminal a
  Ahead,    // the program at a matches from here on (b = 1: does not), then the next instruction
  Behind,   // the program a of `behinds` matches up to here (b = 1: does not), then the next instruction
  End,      // the end of the text; only in the program of an Ahead, with nothing but Match after it
  LoopIn,   // an iteration of loop a begins
  LoopEnd,  // it ends: at b goes on if it was empty, else at the next instruction
  Begin,    // the start of the text, then the next instruction
};

struct Instr {
  Op op;
  int32_t a, b;
};

using CodeRanges = std::vector<std::pair<uint32_t, uint32_t>>;  // sorted, inclusive, without surrogates

// From here on 256 code points stand for special tokens, which no text has: written as the byte 0xff and another one
// (grammar/lark/special.py). To guards they are like any character that no class has.
inline constexpr uint32_t kSpecials = 0x110000;

// UTF-8 of character classes as shared automata. Node 0 = the character is complete.
class Utf8Automata {
 public:
  struct Edge {
    uint8_t lo, hi;
    uint32_t next;
    bool operator<(const Edge& o) const { return std::tie(lo, hi, next) < std::tie(o.lo, o.hi, o.next); }
  };
  Utf8Automata() { nodes_.emplace_back(); }
  // The first node of a class. Of an empty class: a node without edges.
  uint32_t add(const CodeRanges& ranges);
  std::span<const Edge> edges(uint32_t node) const { return nodes_[node]; }
  size_t size() const { return nodes_.size(); }
  // The node behind a byte; kNone where there is none.
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t next(uint32_t node, uint8_t b) const {
    for (const Edge& e : nodes_[node])
      if (e.lo <= b && b <= e.hi) return e.next;
    return kNone;
  }

 private:
  using Sequence = std::vector<std::pair<uint8_t, uint8_t>>;
  uint32_t make(std::span<const Sequence> sequences, size_t depth);
  uint32_t intern(std::vector<Edge> edges);
  std::vector<std::vector<Edge>> nodes_;
  std::map<std::vector<Edge>, uint32_t> index_;
};

// All programs of a grammar.
class Code {
 public:
  // `lacking`: code points that no text has.
  Code(std::vector<Instr> code, const std::vector<CodeRanges>& classes, std::vector<int32_t> behinds,
       const CodeRanges& lacking);

  const Instr& operator[](uint32_t pc) const { return code_[pc]; }
  size_t size() const { return code_.size(); }
  uint32_t first(uint32_t pc) const { return roots_[static_cast<size_t>(code_[pc].a)]; }  // of a Char: its first node
  const Utf8Automata& utf8() const { return utf8_; }
  // As utf8().next, at once.
  uint32_t next(uint32_t node, uint8_t b) const { return next_[size_t{node} * class_count_ + class_of_[b]]; }
  uint32_t any() const { return any_; }  // the first node of all characters that texts may have
  std::span<const int32_t> behinds() const { return behinds_; }
  // Which lookbehinds a thread here may still ask for, a bit each.
  uint64_t asks(uint32_t pc) const { return asks_[pc]; }
  // Whether a thread here can come to its Match at all (lookarounds aside): classes may be empty.
  bool hopeful(uint32_t pc) const { return hopeful_[pc]; }
  // Whether some program asks for the start of the text.
  bool is_anchored() const { return anchored_; }
  // The terminal whose program this is part of; kNoTerminal where it never matches.
  static constexpr uint32_t kNoTerminal = 0xffffffffu;
  uint32_t terminal(uint32_t pc) const { return terminals_[pc]; }
  // Bytes of one class are alike in all programs.
  uint32_t class_count() const { return class_count_; }
  uint32_t class_of(uint8_t b) const { return class_of_[b]; }
  uint8_t byte_of(uint32_t c) const { return byte_of_[c]; }

 private:
  void find_classes();
  void fill_next();
  void find_hopes();
  template <class F>
  void each_successor(uint32_t pc, F f) const;

  std::vector<Instr> code_;
  std::vector<uint32_t> roots_;
  std::vector<int32_t> behinds_;
  Utf8Automata utf8_;
  std::vector<uint64_t> asks_;
  std::vector<bool> hopeful_;
  std::vector<uint32_t> terminals_;
  std::vector<uint32_t> next_;  // by node of utf8_ and class of bytes
  std::array<uint8_t, 256> class_of_{};
  std::vector<uint8_t> byte_of_;
  uint32_t class_count_ = 0, any_ = 0;
  bool anchored_ = false;
};

}  // namespace mw::lark

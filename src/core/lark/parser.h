// The parsers: stacks of LR states, shared and interned.
//
// lalr: lark's own table, one action per look-ahead. earley and cyk: an LR(0) automaton with all its actions at once, over a
// grammar without empty rules, on stacks that share their tops and their tails (generalised LR: Tomita 1985; without empty
// rules every reduction goes to a node of an earlier token, so that sets of parents are complete when they are interned).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../intern.h"
#include "lexer.h"

namespace mw::lark {

struct Tables {
  uint32_t states = 0, terminals = 0, nonterminals = 0;  // the look-ahead `terminals` is the end of the text
  bool general = false;                                  // all actions at once
  // states x (terminals + 1): 0 none, s + 1 shift to s, -(r + 1) reduce by rule r.
  std::vector<int32_t> action;
  std::vector<uint64_t> shifts;                  // general: states x words: the terminals that are shifted, as bits
  std::vector<int32_t> go;                       // states x nonterminals; -1 none
  std::vector<std::vector<uint32_t>> reduces;    // general: rules by state
  std::vector<std::vector<uint64_t>> follow;     // general: look-aheads by nonterminal, as bits
  struct Rule {
    uint32_t lhs, length;
    std::vector<uint32_t> body;  // terminals, then nonterminals
  };
  std::vector<Rule> rules;
  struct Start {
    uint32_t state, end;  // `end`: the state behind the start symbol (general: behind the one above it)
    int32_t empty;        // general: if the start symbol derives the empty text, the state behind it; else -1
  };
  std::vector<Start> starts;
  std::vector<uint32_t> lexer_of;  // by state; general: empty
  bool reduced = false;            // every nonterminal derives something, no conflicts were resolved

  int32_t at(uint32_t s, uint32_t t) const { return action[size_t{s} * (terminals + 1) + t]; }
  int32_t go_to(uint32_t s, uint32_t a) const { return go[size_t{s} * nonterminals + a]; }
  bool follows(uint32_t a, uint32_t t) const { return ((follow[a][t / 64] >> (t % 64)) & 1) != 0; }
  bool is_end(uint32_t start, uint32_t s) const {
    for (const Start& x : starts)
      if (x.state == start && x.end == s) return true;
    return false;
  }
  // Whether something is done in this state on this look-ahead.
  bool acts(uint32_t s, uint32_t t) const;
  size_t words() const { return (terminals + 63) / 64; }
};

using NodeRef = uint32_t;   // a node of a stack: a state and the nodes below
using StackSet = uint32_t;  // the tops of the stacks
inline constexpr StackSet kNoStack = 0xffffffffu;

// The stacks of one request.
class Stacks {
 public:
  Stacks(const Tables& tables, Lexer& lexer) : tables_(tables), lexer_(lexer), scratch_(tables.states), ignored_(tables.words(), 0) {
    for (Type t = 0; t < tables.terminals; ++t)
      if (lexer.ignores(t)) ignored_[t / 64] |= uint64_t{1} << (t % 64);
  }
  struct Node {
    uint32_t state;
    std::span<const NodeRef> below;  // ascending
  };
  // Before the first token; lalr: one set for each start.
  std::vector<StackSet> initial();
  StackSet feed(StackSet s, Type t);
  // The text may end here.
  bool complete(StackSet s);
  bool can_feed(StackSet s, Type t);
  // The state before a token; begin: before the first.
  LexState lexer(StackSet s, bool begin = false);
  LexState known_lexer(StackSet s) const { return lexers_[s]; }  // 0 where it was not asked for yet
  // Dynamic lexers: the terminals that may come next or be passed over, as bits.
  void wanted(StackSet s, std::vector<uint64_t>& out);
  StackSet unite(StackSet a, StackSet b);

  const Node& node(NodeRef n) const { return nodes_[n]; }
  std::span<const NodeRef> tops(StackSet s) const { return sets_[s]; }
  // The nodes so many below.
  std::vector<NodeRef> below(NodeRef n, uint32_t depth) const;
  size_t bytes_used() const { return nodes_.size() * 80; }

 private:
  // Lists that stay where they are.
  class Lists {
   public:
    std::span<const NodeRef> keep(std::span<const NodeRef> list);

   private:
    static constexpr size_t kChunk = 4096;
    std::vector<std::unique_ptr<NodeRef[]>> chunks_;
    size_t left_ = 0;
    NodeRef* at_ = nullptr;
  };
  // Tops that are not interned yet: states, with the nodes below each.
  class Tops {
   public:
    explicit Tops(size_t states) : place_(states, kNone) {}
    std::vector<NodeRef>& at(uint32_t state);
    std::span<const uint32_t> states() const { return states_; }
    void clear();

   private:
    static constexpr uint32_t kNone = 0xffffffffu;
    std::vector<uint32_t> place_;  // by state: index of its list
    std::vector<uint32_t> states_;
    std::vector<std::vector<NodeRef>> lists_;  // kept for the next time
  };
  // What comes of feeding a set: a table of its own, since masks ask for little else.
  class Feeds {
   public:
    const StackSet* find(uint64_t key) const;
    void insert(uint64_t key, StackSet to);

   private:
    static constexpr uint64_t kNone = ~uint64_t{0};
    struct Slot {
      uint64_t key = kNone;
      StackSet to = 0;
    };
    void place(const Slot& slot);
    std::vector<Slot> slots_;
    size_t count_ = 0;
  };
  NodeRef node(uint32_t state, std::span<const NodeRef> below);
  StackSet set(std::span<const NodeRef> tops);
  StackSet close();
  void reduce(uint32_t state, const Tables::Rule& rule, std::vector<uint32_t>& work);
  StackSet feed_one(NodeRef top, Type t, bool& accepted);
  StackSet make_feed(StackSet s, Type t);
  LexState make_lexer(StackSet s, bool begin);

  const Tables& tables_;
  Lexer& lexer_;
  Lists lists_;
  std::vector<Node> nodes_;
  HashIndex node_index_;
  std::vector<std::span<const NodeRef>> sets_;
  HashIndex set_index_;
  Tops scratch_;
  std::vector<NodeRef> under_;
  std::vector<uint64_t> ignored_;
  Feeds feeds_;
  std::vector<int8_t> complete_;
  std::vector<uint64_t> wanted_;  // by set, words of each
  std::vector<bool> wanted_known_;
  std::vector<LexState> lexers_;
};

}  // namespace mw::lark

// The parsers: stacks of LR states, shared and interned.
//
// lalr: lark's own table, one action per look-ahead. earley and cyk: an LR(0) automaton with all its actions at once, over a
// grammar without empty rules, on stacks that share their tops and their tails (generalised LR: Tomita 1985; without empty
// rules every reduction goes to a node of an earlier token, so that sets of parents are complete when they are interned).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "../intern.h"
#include "lexer.h"

namespace mw::lark {

struct Tables {
  uint32_t states = 0, terminals = 0, nonterminals = 0;  // the look-ahead `terminals` is the end of the text
  bool general = false;                                  // all actions at once
  // states x (terminals + 1): 0 none, s + 1 shift to s, -(r + 1) reduce by rule r.
  std::vector<int32_t> action;
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
};

using NodeRef = uint32_t;   // a node of a stack: a state and the nodes below
using StackSet = uint32_t;  // the tops of the stacks
inline constexpr StackSet kNoStack = 0xffffffffu;

// The stacks of one request.
class Stacks {
 public:
  Stacks(const Tables& tables, Lexer& lexer) : tables_(tables), lexer_(lexer) {}
  struct Node {
    uint32_t state;
    std::vector<NodeRef> below;
    bool operator==(const Node&) const = default;
  };
  // Before the first token; lalr: one set for each start.
  std::vector<StackSet> initial();
  StackSet feed(StackSet s, Type t);
  // The text may end here.
  bool complete(StackSet s);
  bool can_feed(StackSet s, Type t);
  // The state before a token; begin: before the first.
  LexState lexer(StackSet s, bool begin = false);
  StackSet unite(StackSet a, StackSet b);

  const Node& node(NodeRef n) const { return nodes_[n]; }
  const std::vector<NodeRef>& tops(StackSet s) const { return sets_[s]; }
  // The nodes so many below.
  std::vector<NodeRef> below(NodeRef n, uint32_t depth) const;
  size_t bytes_used() const { return nodes_.size() * 80; }

 private:
  NodeRef node(uint32_t state, std::vector<NodeRef> below);
  StackSet set(std::vector<NodeRef> tops);
  using Tops = std::map<uint32_t, std::vector<NodeRef>>;  // state -> below
  StackSet close(Tops tops);
  StackSet feed_one(NodeRef top, Type t, bool& accepted);
  StackSet make_feed(StackSet s, Type t);

  const Tables& tables_;
  Lexer& lexer_;
  std::vector<Node> nodes_;
  HashIndex node_index_;
  std::vector<std::vector<NodeRef>> sets_;
  std::map<std::vector<NodeRef>, StackSet> set_index_;
  std::unordered_map<uint64_t, StackSet> feeds_;
  std::vector<int8_t> complete_;
  LexState make_lexer(StackSet s, bool begin);
  std::vector<LexState> lexers_;
};

}  // namespace mw::lark

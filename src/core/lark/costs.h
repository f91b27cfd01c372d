// What it takes to finish a text of a loose grammar (grammar.h), in bytes: an upper bound that some byte lowers.
//
// Behind every token there may be ignored text, one byte of it, which frees all guards. So the cheapest texts of terminals and
// rules can be put one after the other, and stacks can be finished item by item, without looks ahead.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>

#include "live.h"

namespace mw::lark {

class LooseCosts {
 public:
  // What one request remembers.
  struct Memo {
    std::unordered_map<StackSet, uint32_t> stacks;
    std::map<std::pair<NodeRef, uint32_t>, uint32_t> places;
  };
  // rest: by lexer, the guards behind ignored text.
  LooseCosts(const Tables& tables, Lexer& lexer, Live& live, const std::vector<Guards>& rest, const std::map<Type, uint32_t>& fixed);
  uint32_t cost_of_start(uint32_t start) const;
  // Before a token, with no guards that ignored text does not free.
  uint32_t stack_cost(Stacks& stacks, Memo& memo, StackSet s) const;

 private:
  struct Exit {
    uint32_t lhs, pops, cost;
  };
  class Search;
  void find_terminals(Lexer& lexer, Live& live, const std::vector<Guards>& rest);
  void find_rules();
  void find_exits();
  bool improve(uint32_t state, const Exit& exit);
  uint32_t symbol(uint32_t x) const { return x < tables_.terminals ? terminals_[x] : rules_[x - tables_.terminals]; }

  const Tables& tables_;
  std::vector<uint32_t> terminals_, rules_;  // cheapest texts, with a byte behind each token
  std::vector<std::vector<Exit>> exits_;     // by state: the ways to reduce it away
};

}  // namespace mw::lark

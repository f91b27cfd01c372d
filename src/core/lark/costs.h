// What it takes to finish a text of a loose grammar (grammar.h), in bytes: an upper bound that some byte lowers.
//
// Behind every token there may be ignored text, one byte of it, which frees all guards. So the cheapest texts of terminals and
// rules can be put one after the other, and stacks can be finished item by item, without looks ahead.
//
// With indentation, what a line end takes depends on the columns that are open when it comes. So lines and blocks are counted
// beside the bytes: no line begins further to the right than one column for each block that is opened behind the top one.
#pragma once

#include <map>
#include <mutex>
#include <unordered_map>

#include "live.h"

namespace mw::lark {

class LooseCosts {
 public:
  // Lines, opened blocks and bytes, the first deciding: line ends are dear.
  using Sum = uint64_t;
  static constexpr Sum kNoSum = ~Sum{0}, kLine = Sum{1} << 48, kBlock = Sum{1} << 32;
  // What one request remembers.
  struct Memo {
    std::unordered_map<StackSet, Sum> stacks;
    std::map<std::pair<NodeRef, uint32_t>, Sum> places;
  };
  // rest: by lexer, the guards behind ignored text. fixed: of terminals whose costs are no matter of their bytes.
  LooseCosts(const Tables& tables, Lexer& lexer, Live& live, const std::vector<Guards>& rest, const std::map<Type, Sum>& fixed);
  uint32_t cost_of_start(uint32_t start) const;
  // Before a token, with no guards that ignored text does not free; column: of the innermost open block.
  uint32_t stack_cost(Stacks& stacks, Memo& memo, StackSet s, uint32_t column) const;

 private:
  struct Exit {
    uint32_t lhs, pops;
    Sum cost;
  };
  static Sum add(Sum a, Sum b);
  static uint32_t bytes(Sum sum, uint32_t column);
  Sum sum_of_start(uint32_t start) const;
  class Search;
  void find_terminals(Lexer& lexer, Live& live, const std::vector<Guards>& rest);
  void find_rules();
  void find_exits();
  bool improve(uint32_t state, const Exit& exit);
  Sum symbol(uint32_t x) const { return x < tables_.terminals ? terminals_[x] : rules_[x - tables_.terminals]; }

  const Tables& tables_;
  std::vector<Sum> terminals_, rules_;  // cheapest texts, with a byte behind each token
  std::vector<std::vector<Exit>> exits_;     // by state: the ways to reduce it away
};

}  // namespace mw::lark

// A Lark grammar: lexer and parser in one machine, whose states are a lexer state and a handle to stacks and guards.
#pragma once

#include "../lark/bases.h"
#include "../lark/layout.h"
#include "../program.h"

namespace mw {

// States: handle of (stacks, guards, layout) << 32 | state of the lexer; handle 0 = before everything.
class LarkMachine final : public Machine {
 public:
  LarkMachine(std::shared_ptr<lark::Grammar> grammar, bool spelled) : grammar_(std::move(grammar)), spelled_(spelled) {}
  static State start() { return 0; }
  State next(Request& r, State s, uint8_t b) const override;
  Accept accept(Request& r, State s) const override;
  bool more(Request& r, State s) const override;
  void jump(Request& r, const Item& item, std::vector<Item>& out) const override;
  void merge(Request& r, std::vector<Item>& items) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  bool has_base(Request&, State s) const override { return handle(s) != 0; }
  bool merges() const override { return grammar_->tables().general; }
  uint32_t cost(Request& r, State s) const override;
  int spelled(Request& r, State s) const override;
  // The terminals that the text at this place may become or go on with.
  void expected(Request& r, State s, std::vector<uint32_t>& out) const;
  // The states on top of the stacks there.
  void parser_states(Request& r, State s, std::vector<uint32_t>& out) const;

 private:
  struct Memory;
  class MaskWalk;
  struct Context {
    lark::StackSet stacks;
    lark::Guards guards;
    lark::LayoutId layout;
    bool operator==(const Context&) const = default;
  };
  Memory& memory(Request& r) const;
  void walk_costs(Walker& w, const lark::LarkBases::Over& over, Memory& m, TrieNode node, const Item& item) const;
  static lark::LexState lex(State s) { return static_cast<lark::LexState>(s & 0xffffffffu); }
  static uint32_t handle(State s) { return static_cast<uint32_t>(s >> 32); }
  uint32_t cost_of_start() const;
  uint32_t loose_cost(Memory& m, const Context& c, lark::LexState q, int depth) const;
  uint32_t cost_behind(Memory& m, const Context& c, bool newline, int depth) const;
  State before_token(Memory& m, const Context& c, bool begin = false) const;
  State state(Memory& m, const Context& c, lark::LexState q) const;
  bool is_live(Memory& m, State s) const;
  bool find_live(Memory& m, State s) const;
  bool can_go_on(Memory& m, const Context& c, lark::LexState q) const;
  bool wants_token(const Memory& m, const Context& c, lark::LexState q) const;
  bool surely_goes_on(const Memory& m, const Context& c, lark::LexState q) const;
  // Loose grammars: whether some way leads to where everything can be finished, over at most so many tokens.
  bool comes_free(Memory& m, const Context& c, lark::LexState q, int depth) const;
  bool find_free(Memory& m, const Context& c, lark::LexState q, int depth) const;
  bool is_free(Memory& m, const Context& c, bool newline, int depth) const;
  // The ends of lines that can be reached in the middle of one, with real columns; calls f(context, bytes) until it is true.
  struct LineEnd {
    lark::Guards guards;
    int32_t column;
    uint32_t bytes;  // up to there
  };
  const std::vector<LineEnd>& line_ends(Memory& m, lark::LexState q, lark::Guards g, int32_t column, int32_t most) const;
  template <class F>
  bool any_line_end(Memory& m, const Context& c, lark::LexState q, F f) const;
  bool is_complete(Memory& m, const Context& c) const;
  // What follows the ends of tokens in a state.
  struct Jump {
    bool accepting = false;
    std::vector<State> states;
  };
  const Jump& jump_from(Memory& m, State s) const;
  // Calls f(context) for what follows each end of a token here.
  template <class F>
  void each_end(Memory& m, State s, F f) const;

  std::shared_ptr<lark::Grammar> grammar_;
  mutable lark::LarkBases bases_;
  bool spelled_;  // liveness over token sequences is asked for at the ends of tokens alone
};

}  // namespace mw

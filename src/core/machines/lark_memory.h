// What one request knows of a Lark grammar.
#pragma once

#include <map>
#include <unordered_map>

#include "lark.h"

namespace mw {

struct LarkMachine::Memory final : MachineMemory {
  explicit Memory(lark::Grammar& g) : stacks(g.tables(), g.lexer()) { contexts.intern({lark::kNoStack, lark::kNoGuards, 0}); }
  struct Hash {
    uint64_t operator()(const Context& c) const { return mix(mix(mix(51, c.stacks), c.guards), c.layout); }
  };
  lark::Stacks stacks;
  lark::Layouts layouts;
  Interner<Context, Hash> contexts;
  std::unordered_map<State, bool> live;
  std::unordered_map<State, Jump> jumps;
  std::unordered_map<State, uint32_t> costs;
  std::map<std::pair<State, int>, bool> comes_free;
  lark::Live::Known known;
  lark::LooseCosts::Memo loose;
  std::map<std::tuple<lark::LexState, lark::Guards, int32_t, int32_t>, std::vector<LineEnd>> line_ends;  // node-based: references stay
};

}  // namespace mw

// A JSON array: items by position, a bounded number of them.
#pragma once

#include <memory>
#include <vector>

#include "../program.h"
#include "unique.h"

namespace mw {

// States: phase in the 4 top bits, a bit of open_item, the number of items begun above 8 bits of white space.
class ArrayMachine final : public Machine {
 public:
  static constexpr uint64_t kNoMax = ~uint64_t{0};
  ArrayMachine(std::vector<NodeId> prefix, NodeId items, uint64_t min_items, uint64_t max_items, Whitespace ws,
               std::unique_ptr<const UniqueItems> unique = nullptr);
  static State start() { return pack(Open, 0, 0); }
  State next(Request&, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override;
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  uint32_t cost(Request& r, State s) const override;
  State forget(Request& r, State s, const Forget& f) const override;
  void children(std::vector<NodeId>& out) const override;
  const UniqueItems* unique() const override { return unique_.get(); }
  bool open_item(State s) const override { return (s & kOpenItem) != 0; }
  bool endless(Request& r, State s) const override;

 private:
  enum Phase : uint64_t { Open, First, AfterItem, AfterComma, Done };
  static constexpr State pack(Phase p, uint64_t count, uint64_t space) {
    return (static_cast<uint64_t>(p) << 60) | (count << 8) | space;
  }
  static Phase phase(State s) { return static_cast<Phase>(s >> 60); }
  static constexpr State kOpenItem = State{1} << 59;
  static uint64_t count(State s) { return (s >> 8) & ((uint64_t{1} << 51) - 1); }
  static uint32_t space(State s) { return static_cast<uint32_t>(s & 0xff); }
  NodeId item(uint64_t i) const { return i < prefix_.size() ? prefix_[static_cast<size_t>(i)] : items_; }
  // Beyond the prefix and the bounds all counts are alike.
  uint64_t counted(uint64_t n) const { return n > horizon_ ? horizon_ : n; }
  bool may_end(uint64_t n) const { return n >= min_; }
  bool may_go_on(uint64_t n) const { return n < max_; }
  bool item_ends(Request& r, State s) const;
  uint32_t item_cost(const NodeCosts& p, uint64_t n) const;
  uint32_t cost_of_rest(const NodeCosts& p, uint64_t n) const;

  std::vector<NodeId> prefix_;
  NodeId items_;
  uint64_t min_, max_, horizon_;
  Whitespace ws_;
  std::unique_ptr<const UniqueItems> unique_;  // where items must differ
};

}  // namespace mw

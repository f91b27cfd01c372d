// A JSON array whose items are ruled by control states.
#pragma once

#include "../program.h"
#include "../request.h"
#include "unique.h"

namespace mw {

// States: phase in the 4 top bits, the handle of a JointRecord (control state, alternative) above 20 bits of white space, the
// highest of which is that of open_item.
class JointArrayMachine final : public Machine {
 public:
  JointArrayMachine(NodeId control, Whitespace ws, std::unique_ptr<const UniqueItems> unique = nullptr)
      : control_(control), ws_(ws), unique_(std::move(unique)) {}
  static State start() { return pack(Open, 0, 0); }
  State next(Request& r, State s, uint8_t b) const override;
  Accept accept(Request& r, State s) const override;
  void branches(Request& r, State s, std::vector<State>& out) const override;
  bool more(Request& r, State s) const override;
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  uint32_t cost(Request& r, State s) const override;
  void children(std::vector<NodeId>& out) const override { out.push_back(control_); }
  const UniqueItems* unique() const override { return unique_.get(); }
  bool open_item(State s) const override { return (s & kOpenItem) != 0; }

 private:
  enum Phase : uint64_t { Open, First, Branch, AfterItem, AfterComma, Done };
  static constexpr State kOpenItem = State{1} << 19;
  static constexpr State pack(Phase p, uint32_t record, uint32_t space) {
    return (static_cast<uint64_t>(p) << 60) | (static_cast<uint64_t>(record) << 20) | space;
  }
  static State pack(Request& r, Phase p, NodeId control, uint32_t alternative = 0) {
    return pack(p, r.records().joint({control, 0, alternative}), 0);
  }
  static Phase phase(State s) { return static_cast<Phase>(s >> 60); }
  static uint32_t record(State s) { return static_cast<uint32_t>(s >> 20); }
  static uint32_t space(State s) { return static_cast<uint32_t>(s & 0xff); }
  static JointRecord joint(Request& r, State s) { return r.records().joint(record(s)); }
  static const Control* control(Request& r, State s) { return r.program().control(joint(r, s).control, r.needs()); }
  static Accept push(Request& r, const Control& c, uint32_t alternative);
  bool item_ends(Request& r, State s) const;

  NodeId control_;
  Whitespace ws_;
  std::unique_ptr<const UniqueItems> unique_;  // where items must differ
};

}  // namespace mw

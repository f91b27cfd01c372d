// Parts one after the other, with nothing between them.
#pragma once

#include <utility>
#include <vector>

#include "../program.h"

namespace mw {

// States: how many parts have begun. It reads no byte itself.
class SequenceMachine final : public Machine {
 public:
  explicit SequenceMachine(std::vector<NodeId> parts) : parts_(std::move(parts)) {}
  static State start() { return 0; }
  State next(Request&, State, uint8_t) const override { return kDead; }
  Accept accept(Request&, State s) const override;
  bool more(Request&, State) const override { return false; }
  int candidates(Request&, State, std::span<uint8_t>) const override { return 0; }
  uint32_t cost(Request& r, State s) const override;
  void children(std::vector<NodeId>& out) const override;

 private:
  std::vector<NodeId> parts_;
};

}  // namespace mw

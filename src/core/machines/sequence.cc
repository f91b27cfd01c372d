#include "sequence.h"

#include "../request.h"

namespace mw {

Accept SequenceMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = s == parts_.size();
  if (s < parts_.size()) {
    a.push = parts_[static_cast<size_t>(s)];
    a.resume = s + 1;
  }
  return a;
}

uint32_t SequenceMachine::cost(Request& r, State s) const {
  uint32_t sum = 0;
  for (auto i = static_cast<size_t>(s); i < parts_.size(); ++i) sum = add_cost(sum, r.costs().node_cost(parts_[i]));
  return sum;
}

void SequenceMachine::children(std::vector<NodeId>& out) const { out.insert(out.end(), parts_.begin(), parts_.end()); }

}  // namespace mw

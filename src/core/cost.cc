// Closing costs of items, stacks and configurations: the tokens that one witness needs, summed over frames. Each
// machine's cost is that of tokens lying wholly inside it, so the sum is what some sequence of tokens really takes: an
// upper bound of the true minimum (tokens may span frames), and one that some token lowers at every step.
#include <algorithm>

#include "request.h"
#include "spelling.h"

namespace mw {

uint32_t Request::item_cost(const Item& item) {
  return add_cost(machine(item.machine).cost(*this, item.state), rest_cost(item.rest));
}

uint32_t Request::rest_cost(RestId rest) {
  std::vector<uint32_t>& costs = rest_costs_[static_cast<size_t>(unit_)];
  if (costs[rest] <= kNoCost) return costs[rest];
  std::vector<RestId> chain;  // deep stacks must not become deep recursion
  for (RestId r = rest; costs[r] > kNoCost; r = rests_[r].front().rest) chain.push_back(r);
  for (size_t i = chain.size(); i-- > 0;) {
    uint32_t best = kNoCost;
    for (const Item& f : std::vector<Item>(rests_[chain[i]])) {
      const State s = machine(f.machine).resume(*this, f.state, 0);
      if (s != kDead) best = std::min(best, add_cost(machine(f.machine).cost(*this, s), rest_cost(f.rest)));
    }
    if (lacks_nodes()) return best;  // of no account: the caller starts again
    costs[chain[i]] = best;
  }
  return costs[rest];
}

uint32_t Request::config_cost(ConfigId id) {
  const Config& c = config(id);
  if (c.accepting) return 0;
  uint32_t best = kNoCost;
  for (const Item& i : c.items) best = std::min(best, item_cost(i));
  return best;
}

}  // namespace mw

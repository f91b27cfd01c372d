// Closing costs along control states: what the machines of joint objects and arrays share.
#pragma once

#include "../request.h"

namespace mw {

// Tokens from behind a value to the closing bracket, by the witnesses of the control states. `list`: the keys typed so far.
// Each key must differ from those, and from the ones of its kind that come before it.
uint32_t control_cost(Request& r, NodeId control, uint32_t list);
// The same where no comma is due.
uint32_t first_cost(Request& r, NodeId control, uint32_t list);
// Of one alternative: its value, and all that follows.
uint32_t alternative_cost(Request& r, const Control& c, uint32_t alternative, uint32_t list);
// Of the cheapest of some alternatives; of the witness alone, where it is one of them: then the others need not be known.
uint32_t cheapest_alternative(Request& r, const Control& c, std::pair<uint32_t, uint32_t> range, uint32_t list);
// A list with one more key, which a node will read: for kinds of keys, one whose text is not known.
uint32_t list_after(Request& r, NodeId key, uint32_t list);
// Of a member from its key on, as one more of the object, and all that follows.
uint32_t entry_cost(Request& r, const Control& c, uint32_t entry, uint32_t list);

}  // namespace mw

// Closing costs of objects: the required members that are still open, each as `,"name":` and its value, and the brace.
#include <algorithm>

#include "../request.h"
#include "object.h"

namespace mw {
namespace {

// A name as it stands in a JSON text, with the escapes it cannot do without.
std::string written(const std::string& name) {
  static const char* hex = "0123456789abcdef";
  std::string out = ",\"";
  for (char ch : name) {
    const auto b = static_cast<uint8_t>(ch);
    switch (b) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case 8: out += "\\b"; break;
      case 9: out += "\\t"; break;
      case 10: out += "\\n"; break;
      case 12: out += "\\f"; break;
      case 13: out += "\\r"; break;
      default:
        if (is_control(b)) {
          out += "\\u00";
          out += hex[b >> 4];
          out += hex[b & 15];
        } else {
          out += ch;
        }
    }
  }
  return out + "\":";
}

bool needs_escapes(const std::string& name) {
  return std::any_of(name.begin(), name.end(), [](char c) {
    return c == '"' || c == '\\' || is_control(static_cast<uint8_t>(c));
  });
}

}  // namespace

void ObjectMachine::prepare_costs() const {
  std::call_once(costs_once_, [&] {
    spelled_.reserve(size());
    for (const std::string& name : spec_.names) {
      const std::string text = written(name);
      spelled_.push_back(vocab_->spelling_costs(text));
      if (!needs_escapes(name)) continue;
      for (size_t i = 0; i < text.size(); ++i)  // byte by byte, as rest_of_name counts inside the key
        spelled_.back()[i] = static_cast<uint32_t>(text.size() - i);
    }
  });
}

// Tokens from byte `from` of ,"name": to the end of the value.
uint32_t ObjectMachine::name_cost(const NodeCosts& p, uint32_t i, size_t from) const {
  return add_cost(spelled_[i][from], p.node_cost(spec_.children[i]));
}


// From behind a value: all that is required, and the closing brace.
uint32_t ObjectMachine::required_cost(const NodeCosts& p, const Records& k, const ObjectRecord& r) const {
  prepare_costs();
  uint32_t sum = 1;
  const uint32_t from = spec_.any_order ? 0 : r.next;
  for (uint32_t i = next_required_[from]; i < size(); i = next_required_[i + 1])
    if (!spec_.any_order || !k.in_set(r.seen, i)) sum = add_cost(sum, name_cost(p, i, 0));
  return sum;
}

// From before a key's opening quote, where a member must come.
uint32_t ObjectMachine::member_cost(const NodeCosts& p, Records& k, const ObjectRecord& r) const {
  prepare_costs();
  uint32_t best = kNoCost;
  for (uint32_t i = spec_.any_order ? 0 : r.next; i < size(); ++i) {
    if (name_allowed(k, r, i))
      best = std::min(best, add_cost(name_cost(p, i, 1), required_cost(p, k, after_name(k, r, i))));
    if (!spec_.any_order && spec_.required[i]) break;
  }
  if (others_allowed(r))  // a quote, two characters that no forbidden key goes on with, a quote, a colon
    best = std::min(best, add_cost(5, add_cost(p.node_cost(spec_.additional), required_cost(p, k, r))));
  return best;
}

// Tokens from inside the key to the end of the member of name i, of which `read` bytes are behind; kNoCost where the
// partial escape cannot become its next character.
uint32_t ObjectMachine::rest_of_name(const NodeCosts& p, uint32_t i, size_t read, Sub sub) const {
  const std::string& name = spec_.names[i];
  uint32_t finish = 0;
  if (sub_mode(sub) >= Mode::Backslash) {
    Sub at = 0;
    for (; read < name.size(); ++read) {
      const Decoded d = decode_utf8(at, static_cast<uint8_t>(name[read]));
      at = d.value;
      if (d.kind == Decoded::Char) break;
    }
    const auto is_next = [&](uint32_t lo, uint32_t hi) { return lo <= at && at <= hi; };
    if (read == name.size() || !partial_is_live(sub, spec_.any_escapes, is_next)) return kNoCost;
    finish = bytes_to_finish(sub, at);
    ++read;
  }
  if (!needs_escapes(name)) return add_cost(finish, name_cost(p, i, 2 + read));
  for (; read < name.size(); ++read) {
    const auto b = static_cast<uint8_t>(name[read]);
    finish += b < 0x80 ? json_bytes(b) : 1;
  }
  return add_cost(finish + 2, p.node_cost(spec_.children[i]));
}

uint32_t ObjectMachine::key_cost(Request& r, State s) const {
  prepare_costs();
  const NodeCosts p = r.costs();
  Records& k = r.records();
  const ObjectRecord rec = k.object(key_record(k, s));
  uint32_t best = kNoCost;
  if (phase(s) == Key) {
    std::vector<uint8_t> path;
    trie_.trie().path(cursor(s), path);
    for (uint32_t t = first_under_[cursor(s)]; t < end_under_[cursor(s)]; ++t) {
      const uint32_t i = by_text_[t];
      if (!name_allowed(k, rec, i)) continue;
      const uint32_t rest = rest_of_name(p, i, path.size(), low(s));
      best = std::min(best, add_cost(rest, required_cost(p, k, after_name(k, rec, i))));
    }
  }
  if (others_allowed(rec)) {
    const uint32_t away = may_become_forbidden(r, s) ? 2 : 0;
    const uint32_t rest = add_cost(p.node_cost(spec_.additional), required_cost(p, k, rec));
    best = std::min(best, add_cost(bytes_to_finish(low(s)) + away + 2, rest));
  }
  return best;
}

uint32_t ObjectMachine::cost(Request& r, State s) const {
  const NodeCosts p = r.costs();
  Records& k = r.records();
  if (in_key(s)) return key_cost(r, s);
  const ObjectRecord rec = k.object(record(s));
  switch (phase(s)) {
    case Key: case OtherKey: break;
    case Open: return add_cost(1, cost(r, pack(First, 0, record(s), 0)));
    case First: return can_close(k, rec) ? 1 : member_cost(p, k, rec);
    case AfterKey: return add_cost(1, cost(r, pack(Value, cursor(s), record(s), 0)));
    case Value: {
      const NodeId child = cursor(s) == kOther ? spec_.additional : spec_.children[cursor(s)];
      return add_cost(p.node_cost(child), required_cost(p, k, rec));
    }
    case AfterValue: return required_cost(p, k, rec);
    case AfterComma: return member_cost(p, k, rec);
    case Done: return 0;
  }
  return kNoCost;
}

}  // namespace mw

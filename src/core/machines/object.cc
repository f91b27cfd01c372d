#include "object.h"

#include <algorithm>

#include "../mask.h"
#include "../request.h"
#include "spaces.h"

namespace mw {

State ObjectMachine::next(Request& r, State s, uint8_t b) const {
  const Phase p = phase(s);
  if (in_key(s)) return next_in_key(r, s, b);
  if (p == Open) return b == '{' ? pack(First, 0, 0, 0) : kDead;
  if (p == Done) return kDead;
  const uint32_t w = next_space(ws_, low(s), b);
  if (w != kSpaceDead) return pack(p, cursor(s), record(s), w);
  Records& k = r.records();
  switch (p) {
    case First:
    case AfterValue: {
      const ObjectRecord& rec = k.object(record(s));
      if (b == '}' && can_close(k, rec)) return pack(Done, 0, 0, 0);
      if (!can_go_on(k, rec)) return kDead;
      if (p == First && b == '"') return pack(Key, 0, record(s), 0);
      return p == AfterValue && b == ',' ? pack(AfterComma, 0, record(s), 0) : kDead;
    }
    case AfterComma: return b == '"' ? pack(Key, 0, record(s), 0) : kDead;
    case AfterKey: return b == ':' ? pack(Value, cursor(s), record(s), 0) : kDead;
    default: return kDead;
  }
}

Accept ObjectMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = phase(s) == Done;
  if (phase(s) == Value) {
    a.push = cursor(s) == kOther ? spec_.additional : spec_.children[cursor(s)];
    a.resume = pack(AfterValue, 0, record(s), 0);
  }
  return a;
}

bool ObjectMachine::more(Request&, State s) const {
  const Phase p = phase(s);
  if (p == Done) return false;
  return p != Value || space_may_follow(ws_, low(s));
}

int ObjectMachine::candidates(Request& r, State s, std::span<uint8_t> out) const {
  const auto just = [&](uint8_t b) {
    out[0] = b;
    return 1;
  };
  switch (phase(s)) {
    case Open: return just('{');
    case Done: return 0;
    case OtherKey: return -1;
    case Key: {
      if (low(s) != 0 || others_allowed(r.records().object(record(s)))) return -1;
      const TokenTrie& trie = trie_.trie();
      const uint32_t n = trie.child_count(cursor(s));
      if (n + 2 > out.size()) return -1;
      int k = 0;
      for (uint32_t i = 0; i < n; ++i) {
        const uint8_t b = trie.byte(trie.first_child(cursor(s)) + i);
        if (b != '"' && b != '\\') out[static_cast<size_t>(k++)] = b;
      }
      out[static_cast<size_t>(k++)] = '"';
      out[static_cast<size_t>(k++)] = '\\';
      return k;
    }
    case First: out[0] = '"'; out[1] = '}'; return list_spaces(ws_, low(s), out, 2);
    case AfterValue: out[0] = ','; out[1] = '}'; return list_spaces(ws_, low(s), out, 2);
    case AfterComma: return list_spaces(ws_, low(s), out, just('"'));
    case AfterKey: return list_spaces(ws_, low(s), out, just(':'));
    case Value: return list_spaces(ws_, low(s), out, 0);
  }
  return -1;
}

bool ObjectMachine::has_base(Request& r, State s) const {
  return in_key(s) && others_allowed(r.records().object(key_record(r.records(), s)));
}

bool ObjectMachine::walk_base(Walker& w, TrieNode node, const Item& it) const {
  const Phase p = phase(it.state);
  if (in_key(it.state)) return walk_key(w, node, it);
  if (p == Open || p == Done) return false;
  const State rest = pack(p, cursor(it.state), record(it.state), kSpaceOver);
  return walk_spaces(w, ws_, node, it, low(it.state), rest);
}

// Which other keys were typed matters only to the key that must come now: a way to the end need not type more of them.
// Past the names, or inside an escape that does not lead on to one, the text of a key matters as long as it may become one
// typed before.
State ObjectMachine::forget(Request& r, State s, const Forget&) const {
  Records& k = r.records();
  const Phase p = phase(s);
  if (p == Open || p == Done || p == AfterComma) return s;
  ObjectRecord rec = k.object(in_key(s) ? key_record(k, s) : record(s));
  if (!in_key(s)) {
    rec.others = 0;
    return pack(p, cursor(s), k.object(rec), low(s));
  }
  if (may_become_typed(r, s)) return s;
  const bool leaves = p == OtherKey || (sub_mode(low(s)) >= Mode::Backslash && !some_name_under(k, rec, cursor(s), low(s)));
  rec.others = 0;
  if (leaves) return outside(k, k.object(rec), kUnknownText, representative(low(s), spec_.any_escapes));
  return pack(p, cursor(s), k.object(rec), low(s));
}

void ObjectMachine::children(std::vector<NodeId>& out) const {
  for (NodeId c : spec_.children)
    if (c != kNoChild) out.push_back(c);
  if (spec_.additional != kNoChild) out.push_back(spec_.additional);
}

// ---------------------------------------------------------------- the inside of a key

// The text of the key so far: kept in its record once it has left the names, else the path to the cursor.
TextId ObjectMachine::text_of(Request& r, State s) const {
  Records& k = r.records();
  if (phase(s) == OtherKey) return key_text(k, s).text;
  std::vector<uint8_t> path;
  trie_.trie().path(cursor(s), path);
  TextId text = 0;
  for (uint8_t b : path) text = k.append(text, b);
  return text;
}

// Moves by decoded bytes. Inside the trie of names the cursor is the text; outside only other keys are left.
State ObjectMachine::enter(Request& r, State s, std::span<const uint8_t> bytes, Sub sub) const {
  Records& k = r.records();
  const uint32_t rec = key_record(k, s);
  const bool others = others_allowed(k.object(rec));
  bool inside = phase(s) == Key;
  TrieNode at = inside ? cursor(s) : TokenTrie::kRoot;
  TextId text = inside ? 0 : key_text(k, s).text;
  for (uint8_t b : bytes) {
    if (inside) {
      const TrieNode c = trie_.child(at, b);
      if (c != kNoNode) {
        at = c;
        continue;
      }
      if (!others) return kDead;
      text = text_of(r, pack(Key, at, rec, 0));
      inside = false;
    }
    if (text != kUnknownText) text = k.append(text, b);
  }
  if (!inside) return outside(k, rec, text, sub);
  return others || some_name_under(k, k.object(rec), at, 0) ? pack(Key, at, rec, sub) : kDead;
}

State ObjectMachine::next_in_key(Request& r, State s, uint8_t b) const {
  const Sub sub = low(s);
  const Decoded d = decode_json(sub, b, spec_.any_escapes);
  if (d.kind == Decoded::Dead) return kDead;
  if (d.kind == Decoded::Quote) return close_key(r, s);
  const Mode after = d.kind == Decoded::Partial ? sub_mode(d.value) : Mode::Start;
  const bool escape = sub_mode(sub) >= Mode::Backslash || after >= Mode::Backslash;
  if (!escape)  // raw UTF-8: the cursor moves with every byte
    return enter(r, s, std::span(&b, 1), d.kind == Decoded::Partial ? d.value : 0);
  if (d.kind == Decoded::Partial) {
    Records& k = r.records();
    const ObjectRecord& rec = k.object(key_record(k, s));
    if (phase(s) == Key && !others_allowed(rec) && !some_name_under(k, rec, cursor(s), d.value)) return kDead;
    return (s & ~static_cast<State>(kField)) | d.value;
  }
  uint8_t bytes[4];
  const int n = encode_utf8(d.value, bytes);
  return enter(r, s, std::span(bytes, static_cast<size_t>(n)), 0);
}

bool ObjectMachine::closes_as_other(Request& r, State s) const {
  Records& k = r.records();
  const ObjectRecord rec = k.object(key_record(k, s));
  if (!others_allowed(rec) || low(s) != 0) return false;
  if (phase(s) == Key && name_at(cursor(s)) >= 0) return false;
  if (rec.others == 0) return true;
  const TextId text = text_of(r, s);
  return !k.any_other(rec.others, [&](TextId other) { return other == text; });
}

State ObjectMachine::close_key(Request& r, State s) const {
  Records& k = r.records();
  ObjectRecord rec = k.object(key_record(k, s));
  if (phase(s) == Key) {
    const int i = name_at(cursor(s));
    if (i >= 0) {
      if (!name_allowed(k, rec, static_cast<uint32_t>(i))) return kDead;
      return pack(AfterKey, static_cast<uint32_t>(i), k.object(after_name(k, rec, static_cast<uint32_t>(i))), 0);
    }
  }
  if (!closes_as_other(r, s)) return kDead;
  const TextId text = text_of(r, s);
  if (k.any_other(rec.others, [](TextId other) { return other == kUnknownText; })) r.doubt();
  return pack(AfterKey, kOther, k.object(after_other(k, rec, text)), 0);
}

// Whether some way to go on ends in a key that is no other key: a name, or one typed before.
bool ObjectMachine::may_become_forbidden(Request& r, State s) const { return phase(s) == Key || may_become_typed(r, s); }

bool ObjectMachine::may_become_typed(Request& r, State s) const {
  Records& k = r.records();
  const uint32_t others = k.object(key_record(k, s)).others;
  if (others == 0) return false;
  const TextId text = text_of(r, s);
  if (text == kUnknownText) return false;
  return k.any_other(others, [&](TextId other) { return other != kUnknownText && k.is_prefix(text, other); });
}

}  // namespace mw

#include "key.h"

#include <algorithm>

#include "../request.h"
#include "partial.h"

namespace mw {

KeyMachine::KeyMachine(std::shared_ptr<Automaton> automaton, uint32_t kind, bool any_escapes, bool restricted, const Vocab& vocab)
    : automaton_(std::move(automaton)), dfa_(automaton_->dfa()),
      bases_(automaton_->bases(vocab, any_escapes ? Transport::JsonAny : Transport::JsonMinimal)), kind_(kind),
      any_escapes_(any_escapes), restricted_(restricted) {}

bool KeyMachine::may_run_out() const {
  constexpr uint64_t many = 1 << 16;  // as the lowering has it: nobody types as many
  return restricted_ && !automaton_->counts().exceeds(dfa_.start(), many);
}

// Keys of which the text is unknown do not count here: the opening quote is where they raise a doubt.
State KeyMachine::enter(Request& r, State start, uint32_t given) const {
  const uint32_t known = r.records().known_typed(given);
  return lives(r, {known, 0, dfa_.start()}) ? start | given : kDead;
}

State KeyMachine::next(Request& r, State s, uint8_t b) const {
  Records& k = r.records();
  if (is_closed(s)) return kDead;
  if (!is_inside(s)) {
    const KeyCursor at{static_cast<uint32_t>(s & ~kQuote), 0, dfa_.start()};
    return b == '"' && lives(r, at) ? pack(k, at, 0) : kDead;
  }
  const Decoded d = decode_json(sub_of(s), b, any_escapes_);
  if (d.kind == Decoded::Dead) return kDead;
  const KeyCursor at = cursor(k, s);
  if (d.kind == Decoded::Quote) return close(r, at);
  if (d.kind == Decoded::Partial) {
    const auto live = [&](uint32_t lo, uint32_t hi) { return any_lives_in(r, at, lo, hi); };
    return partial_is_live(d.value, any_escapes_, live) ? pack(k, at, d.value) : kDead;
  }
  const KeyCursor to = after(r, at, d.value);
  return lives(r, to) ? pack(k, to, 0) : kDead;
}

Accept KeyMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = is_closed(s);
  if (a.pop) a.value = static_cast<uint32_t>(s & ~kClosed);
  return a;
}

int KeyMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  if (is_closed(s)) return 0;
  if (is_inside(s)) return -1;
  out[0] = '"';
  return 1;
}

// ---------------------------------------------------------------- typed keys

bool KeyMachine::takes(Records& k, const TypedKey& key) const {
  if (key.kind == kind_) return true;
  DfaState d = dfa_.start();
  Sub sub = 0;
  for (char c : k.text(key.text)) {
    const Decoded e = decode_utf8(sub, static_cast<uint8_t>(c));
    sub = e.kind == Decoded::Partial ? e.value : 0;
    if (e.kind == Decoded::Char) d = dfa_.next(d, e.value);
    if (d == 0) return false;
  }
  return dfa_.accepting(d);
}

// The typed keys that begin with the text; nullptr: there are none.
const KeyMachine::Typed* KeyMachine::typed_under(Request& r, const KeyCursor& at) const {
  Records& k = r.records();
  const uint32_t known = k.known_typed(at.list);
  if (known == 0 || at.text == kUnknownText) return nullptr;
  TypedIndex& index = r.typed_index(kind_);
  index.update(k, known, [&](const TypedKey& key) { return takes(k, key); });
  return index.find(at.text);
}

// Whether the regex takes more texts that begin like this than were typed.
bool KeyMachine::lives(Request& r, const KeyCursor& at) const {
  if (at.dfa == 0) return false;
  if (at.list == 0) return true;
  const Typed* typed = typed_under(r, at);
  const uint64_t known = typed ? typed->count : 0;
  const uint64_t unknown = r.records().count_unknown_typed(at.list, [](uint32_t) { return true; });
  StringCounts& counts = automaton_->counts();
  if (known + unknown == 0 || counts.exceeds(at.dfa, known + unknown)) return true;
  if (!counts.exceeds(at.dfa, known)) return false;
  r.doubt();
  return true;
}

KeyCursor KeyMachine::after(Request& r, KeyCursor at, uint32_t code_point) const {
  at.dfa = dfa_.next(at.dfa, code_point);
  if (at.text == kUnknownText) return at;
  uint8_t bytes[4];
  const int n = encode_utf8(code_point, bytes);
  for (int i = 0; i < n; ++i) at.text = r.records().append(at.text, bytes[i]);
  return at;
}

State KeyMachine::close(Request& r, const KeyCursor& at) const {
  Records& k = r.records();
  if (!dfa_.accepting(at.dfa)) return kDead;
  if (at.list != 0) {
    const Typed* typed = typed_under(r, at);
    if (typed && typed->ends) return kDead;
    if (k.known_typed(at.list) != at.list) r.doubt();
  }
  return closed(k, at.text, kind_);
}

// The characters with which typed keys go on, ascending.
std::vector<uint32_t> KeyMachine::next_typed(Request& r, const KeyCursor& at) const {
  struct At {
    TextId text;
    Sub sub;
  };
  std::vector<uint32_t> out;
  if (typed_under(r, at) == nullptr) return out;
  const TypedIndex& index = r.typed_index(kind_);
  std::vector<At> stack{{at.text, 0}};
  while (!stack.empty()) {
    const At here = stack.back();
    stack.pop_back();
    for (uint8_t b : index.find(here.text)->next) {
      const Decoded d = decode_utf8(here.sub, b);
      if (d.kind == Decoded::Char) out.push_back(d.value);
      else stack.push_back({r.records().append(here.text, b), d.value});
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Calls near(c) for the characters of [lo, hi] with which typed keys go on, and off(lo, hi) for what lies between, until
// one says true.
template <class Near, class Off>
bool KeyMachine::any_next(Request& r, const KeyCursor& at, uint32_t lo, uint32_t hi, Near near, Off off) const {
  for (uint32_t c : next_typed(r, at)) {
    if (c < lo || c > hi) continue;
    if (c > lo && off(lo, c - 1)) return true;
    if (near(c)) return true;
    if (c == hi) return false;
    lo = c + 1;
  }
  return off(lo, hi);
}

bool KeyMachine::any_lives_in(Request& r, const KeyCursor& at, uint32_t lo, uint32_t hi) const {
  const auto off = [&](uint32_t from, uint32_t to) { return dfa_.any_live_in(at.dfa, from, to); };
  if (at.list == 0) return off(lo, hi);
  if (r.records().known_typed(at.list) != at.list) {  // which characters are left depends on the unknown keys
    r.doubt();
    return off(lo, hi);
  }
  return any_next(r, at, lo, hi, [&](uint32_t c) { return lives(r, after(r, at, c)); }, off);
}

// ---------------------------------------------------------------- searches over ways to the end

// What text a key had in the end matters to later keys of its kind. All texts of a small kind are remembered; of a large one
// the few shortest, and where costs count: the others are so many that a way to the end is taken to find another one for each
// of its keys.
const std::vector<std::string>& KeyMachine::few(bool costs) const {
  std::call_once(few_once_, [&] {
    StringCounts& counts = automaton_->counts();
    const DfaState start = dfa_.start();
    if (start == 0) return;
    if (!counts.exceeds(start, kFewKeys)) {
      few_[0] = few_[1] = counts.within(start, StringCounts::kNever);
    } else {
      const uint32_t bytes = counts.bytes_beyond(start, kShortKeys);
      if (bytes > 0) few_[1] = counts.within(start, bytes - 1);
    }
  });
  return few_[costs ? 1 : 0];
}

// Whether the text may become one that was typed, or one to be remembered.
bool KeyMachine::may_matter(Request& r, const KeyCursor& at, Sub sub, bool costs) const {
  if (at.text == kUnknownText) return false;
  const auto may_be = [&](uint32_t code_point) {
    return partial_is_live(sub, any_escapes_, [&](uint32_t lo, uint32_t hi) { return lo <= code_point && code_point <= hi; });
  };
  if (sub == 0 && typed_under(r, at) != nullptr) return true;
  const std::vector<uint32_t> next = sub == 0 ? std::vector<uint32_t>() : next_typed(r, at);
  if (std::any_of(next.begin(), next.end(), may_be)) return true;
  const std::string text = r.records().text(at.text);
  return std::any_of(few(costs).begin(), few(costs).end(), [&](const std::string& one) {
    if (!one.starts_with(text) || (sub != 0 && one.size() == text.size())) return false;
    if (sub == 0) return true;
    Decoded d{Decoded::Partial, 0};
    for (size_t i = text.size(); d.kind == Decoded::Partial; ++i) d = decode_utf8(d.value, static_cast<uint8_t>(one[i]));
    return may_be(d.value);
  });
}

State KeyMachine::forget(Request& r, State s, const Forget& f) const {
  Records& k = r.records();
  if (is_closed(s)) {
    const TextId text = k.typed_key(static_cast<uint32_t>(s & ~kClosed) - 1).text;
    return may_matter(r, {0, text, 0}, 0, f.costs) ? s : closed(k, kUnknownText, kind_);
  }
  if (!is_inside(s)) {
    const auto list = static_cast<uint32_t>(s & ~kQuote);
    return kQuote | k.sorted_typed(list, [&](const TypedKey& key) { return takes(k, key); });
  }
  const KeyCursor at = cursor(k, s);
  if (may_matter(r, at, sub_of(s), f.costs)) return s;
  return pack(k, {0, kUnknownText, at.dfa}, forget_in(dfa_, at.dfa, sub_of(s), any_escapes_));
}

// ---------------------------------------------------------------- closing costs

uint32_t KeyMachine::bytes_beyond(DfaState d, uint32_t n) const {
  return std::min(kNoCost, automaton_->counts().bytes_beyond(d, n));
}

// Of keys that begin like this, so many were typed; within so many bytes there is a text more. A character of it on, the
// same can be said again with fewer bytes.
uint32_t KeyMachine::cost_between(Request& r, const KeyCursor& at) const {
  const Typed* typed = typed_under(r, at);
  const uint32_t unknown = r.records().count_unknown_typed(at.list, [&](uint32_t kind) { return kind == kind_; });
  const uint32_t count = (typed ? typed->count : 0) + unknown;
  if (count > 0 && unknown == 0 && dfa_.accepting(at.dfa) && !typed->ends) return 1;
  const uint32_t bytes = add_cost(1, bytes_beyond(at.dfa, count));
  return count > 0 ? bytes : std::min(bytes, automaton_->finish(r.cost_unit(), r.vocab(), transport(), at.dfa, 0));
}

uint32_t KeyMachine::cost_inside(Request& r, const KeyCursor& at, Sub sub) const {
  if (sub == 0) return cost_between(r, at);
  uint32_t best = kNoCost;
  if (typed_under(r, at) == nullptr) best = automaton_->finish(r.cost_unit(), r.vocab(), transport(), at.dfa, sub);
  std::vector<DfaState> next;
  each_finish(sub, any_escapes_, [&](uint32_t first, uint32_t last, uint32_t bytes) {
    const auto take = [&](const KeyCursor& to) {
      if (to.dfa != 0) best = std::min(best, add_cost(bytes, cost_between(r, to)));
    };
    const auto off = [&](uint32_t lo, uint32_t hi) {
      dfa_.successors_in(at.dfa, lo, hi, next);
      for (DfaState d : next) take({at.list, kUnknownText, d});
      return false;
    };
    any_next(r, at, first, last, [&](uint32_t c) { return take(after(r, at, c)), false; }, off);
  });
  return best;
}

uint32_t KeyMachine::cost(Request& r, State s) const {
  if (is_closed(s)) return 0;
  if (!is_inside(s)) return fresh_cost(r, static_cast<uint32_t>(s & ~kQuote), 0);
  return cost_inside(r, cursor(r.records(), s), sub_of(s));
}

uint32_t KeyMachine::fresh_cost(Request& r, uint32_t list, uint32_t others) const {
  const KeyCursor at{list, 0, dfa_.start()};
  if (others == 0) return add_cost(1, cost_between(r, at));
  const Typed* typed = typed_under(r, at);
  const uint32_t unknown = r.records().count_unknown_typed(list, [&](uint32_t kind) { return kind == kind_; });
  return add_cost(2, bytes_beyond(at.dfa, (typed ? typed->count : 0) + unknown + others));
}

}  // namespace mw

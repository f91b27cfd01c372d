#include "string.h"

#include <algorithm>

#include "../mask.h"
#include "../spelling.h"
#include "choice.h"
#include "partial.h"

namespace mw {
namespace {

Sub sub_of(State s) { return static_cast<Sub>(s & kSubMask); }

}  // namespace

// ---------------------------------------------------------------- any content, with length bounds

State StringMachine::next(Request&, State s, uint8_t b) const {
  if (s == kQuote) return b == '"' ? body(0, 0) : kDead;
  if (s == kClosed) return kDead;
  const Sub sub = sub_of(s);
  const Decoded d = decode_json(sub, b, any_escapes_);
  if (d.kind == Decoded::Dead) return kDead;
  if (d.kind == Decoded::Quote) return count(s) >= min_ ? kClosed : kDead;
  const uint64_t n = count(s) + (sub == 0 ? 1 : 0);  // a character counts from its first byte on
  if (n > max_) return kDead;
  return body(n, d.kind == Decoded::Partial ? d.value : 0);
}

Accept StringMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = s == kClosed;
  return a;
}

int StringMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  if (s == kQuote || (s < kClosed && sub_of(s) == 0 && count(s) >= max_)) {
    out[0] = '"';
    return 1;
  }
  return s == kClosed ? 0 : -1;
}

namespace {

// Near the budget, where bytes were too many, bases within the vocabulary would be made in vain for most nodes.
bool is_near(Walker& w, TrieNode node) {
  return w.costs() && w.request().cost_unit() == CostUnit::Tokens && node != TokenTrie::kRoot;
}

bool fits(Walker& w, RestId rest, uint32_t most) {
  return !w.costs() || w.fits(add_cost(most, w.request().rest_cost(rest)));
}

}  // namespace

bool StringMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  if (item.state >= kClosed || !w.takes_sets()) return false;
  const uint64_t n = count(item.state);
  if (n >= max_ && sub_of(item.state) == 0) return false;  // only the closing quote: one child
  StringBase& base = w.vocab().bases().string(node, sub_of(item.state), any_escapes_);
  const uint64_t room = max_ == kNoMax ? kNoMax : max_ - n;
  const uint64_t due = min_ > n ? min_ - n : 0;
  const auto clamp = [](uint64_t v) { return static_cast<uint32_t>(std::min<uint64_t>(v, 0xffffffffu)); };
  const CharRange range{clamp(due), clamp(room)};
  const Item closed{kClosed, item.machine, item.rest};
  if (w.costs() && !fits(w, item.rest, add_cost(most_for_characters(w.vocab(), due), kMostToClose))) {
    add_with_costs(w, base, item, room);
    w.emit(base.close.between(range.lo, range.hi), closed);
  } else if (due == 0 && room >= base.stay.max_chars() && room >= base.close.max_chars() &&
             room >= base.cut.max_chars()) {
    w.add(base.all);
  } else {
    w.add(base.stay.up_to(range.hi));
    w.add(base.cut.up_to(range.hi));
    if (due == 0 && room >= base.close.max_chars()) w.add(base.close.all());
    else w.add(base.close.between(range.lo, range.hi));
  }
  w.pop_exits(base.exits, range, item.rest);
  return true;
}

// Each count of characters has a cost of its own; far from the budget they all pass, one by one.
void StringMachine::add_with_costs(Walker& w, StringBase& base, const Item& item, uint64_t room) const {
  const uint64_t n = count(item.state);
  for (uint32_t k : base.stay.counts()) {
    if (k > room) break;
    w.emit(base.stay.between(k, k), {body(n + k, 0), item.machine, item.rest});
  }
  for (const StringBase::Cut& cut : base.cuts)
    if (cut.chars <= room)
      w.emit(std::span(&cut.token, 1), {body(n + cut.chars, cut.sub), item.machine, item.rest});
}

// Fewest tokens for n characters, by the tokens that lie inside a string and end between characters.
uint32_t StringMachine::cost_of_characters(const Vocab& vocab, uint64_t n) const {
  if (n == 0) return 0;
  count_tokens(vocab);
  return costs_[static_cast<size_t>(n)];
}

uint32_t StringMachine::most_for_characters(const Vocab& vocab, uint64_t n) const {
  if (n == 0) return 0;
  count_tokens(vocab);
  return most_[static_cast<size_t>(n)];
}

void StringMachine::count_tokens(const Vocab& vocab) const {
  std::call_once(once_, [&] {
    const StringBase& base = const_cast<Vocab&>(vocab).bases().string(TokenTrie::kRoot, 0, any_escapes_);
    costs_.assign(static_cast<size_t>(min_) + 1, kNoCost);
    costs_[0] = 0;
    for (size_t i = 1; i < costs_.size(); ++i)
      for (uint32_t k : base.stay.counts()) {
        if (k > i) break;
        costs_[i] = std::min(costs_[i], add_cost(1, costs_[i - k]));
      }
    most_ = costs_;
    for (size_t i = 1; i < most_.size(); ++i) most_[i] = std::max(most_[i], most_[i - 1]);
  });
}

uint32_t StringMachine::cost(Request& r, State s) const {
  if (s == kClosed) return 0;
  const uint64_t n = s == kQuote ? 0 : count(s);
  const uint64_t due = min_ > n ? min_ - n : 0;
  const uint32_t rest = add_cost(cost_of_characters(r.vocab(), due), 1);
  return add_cost(rest, s == kQuote ? 1 : bytes_to_finish(sub_of(s)));
}

State StringMachine::forget(Request&, State s, const Forget& f) const {
  if (s >= kClosed) return s;
  return body(forget_count(count(s), min_, max_, f), representative(sub_of(s), any_escapes_));
}

// ---------------------------------------------------------------- content of a regex

RegexStringMachine::RegexStringMachine(std::shared_ptr<Automaton> automaton, bool any_escapes, const Vocab& vocab)
    : automaton_(std::move(automaton)), dfa_(automaton_->dfa()),
      bases_(automaton_->bases(vocab, any_escapes ? Transport::JsonAny : Transport::JsonMinimal)),
      any_escapes_(any_escapes) {}

State RegexStringMachine::next(Request&, State s, uint8_t b) const {
  if (s == kQuote) return b == '"' ? pack(dfa_.start(), 0) : kDead;
  if (s == kClosed) return kDead;
  const auto d = static_cast<DfaState>(s >> kSubBits);
  const Decoded c = decode_json(sub_of(s), b, any_escapes_);
  switch (c.kind) {
    case Decoded::Quote: return dfa_.accepting(d) ? kClosed : kDead;
    case Decoded::Partial: {
      const auto live = [&](uint32_t lo, uint32_t hi) { return dfa_.any_live_in(d, lo, hi); };
      return partial_is_live(c.value, any_escapes_, live) ? pack(d, c.value) : kDead;
    }
    case Decoded::Char: {
      const DfaState next = dfa_.next(d, c.value);
      return next == 0 ? kDead : pack(next, 0);
    }
    default: return kDead;
  }
}

Accept RegexStringMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = s == kClosed;
  return a;
}

int RegexStringMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  if (s == kQuote) {
    out[0] = '"';
    return 1;
  }
  return s == kClosed ? 0 : -1;
}

bool RegexStringMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  if (item.state >= kClosed || !w.takes_sets()) return false;
  const auto d = static_cast<DfaState>(item.state >> kSubBits);
  const bool universal = dfa_.is_universal(d);
  if (universal && fits(w, item.rest, kMostToClose)) {
    StringBase& base = w.vocab().bases().string(node, sub_of(item.state), any_escapes_);
    w.add(base.all);
    w.pop_exits(base.exits, {}, item.rest);
    return true;
  }
  if (universal || sub_of(item.state) != 0 || is_near(w, node)) return false;
  const RegexBase& base = w.keep(bases_.get(w.vocab().bases(), node, d, w.costs()));
  if (w.costs() && !fits(w, item.rest, automaton_->widest(base, w.vocab(), transport()))) return false;
  w.add(base.stay);
  for (const TokenSet* set : base.shared) w.add(*set);
  w.add(base.close);
  w.pop_exits(base.exits(w.trie()), {}, item.rest);
  return true;
}

uint32_t RegexStringMachine::cost(Request& r, State s) const {
  if (s == kClosed) return 0;
  if (s == kQuote) return add_cost(1, automaton_->finish(r.cost_unit(), r.vocab(), transport(), dfa_.start(), 0));
  return automaton_->finish(r.cost_unit(), r.vocab(), transport(), static_cast<DfaState>(s >> kSubBits), sub_of(s));
}

State RegexStringMachine::forget(Request&, State s, const Forget&) const {
  if (s >= kClosed) return s;
  const auto d = static_cast<DfaState>(s >> kSubBits);
  return pack(d, forget_in(dfa_, d, sub_of(s), any_escapes_));
}

bool RegexStringMachine::endless(Request&, State s) const {
  if (s == kClosed || (s != kQuote && sub_of(s) != 0)) return false;
  return automaton_->counts().infinite(s == kQuote ? dfa_.start() : static_cast<DfaState>(s >> kSubBits));
}

// ---------------------------------------------------------------- raw text of a regex

RegexMachine::RegexMachine(std::shared_ptr<Automaton> automaton, const Vocab& vocab)
    : automaton_(std::move(automaton)), dfa_(automaton_->dfa()), bases_(automaton_->bases(vocab, Transport::Raw)) {}

State RegexMachine::next(Request&, State s, uint8_t b) const {
  const auto d = static_cast<DfaState>(s >> kSubBits);
  const Decoded c = decode_utf8(sub_of(s), b);
  if (c.kind == Decoded::Partial) {
    const auto live = [&](uint32_t lo, uint32_t hi) { return dfa_.any_live_in(d, lo, hi); };
    return partial_is_live(c.value, true, live) ? (State{d} << kSubBits) | c.value : kDead;
  }
  if (c.kind != Decoded::Char) return kDead;
  const DfaState next = dfa_.next(d, c.value);
  return next == 0 ? kDead : State{next} << kSubBits;
}

Accept RegexMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = sub_of(s) == 0 && dfa_.accepting(static_cast<DfaState>(s >> kSubBits));
  return a;
}

bool RegexMachine::more(Request&, State s) const {
  return sub_of(s) != 0 || dfa_.has_next(static_cast<DfaState>(s >> kSubBits));
}

bool RegexMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  if (sub_of(item.state) != 0 || !w.takes_sets()) return false;
  const auto d = static_cast<DfaState>(item.state >> kSubBits);
  if (item.rest == kEndOfText && dfa_.is_total(d)) {  // any text goes on
    if (w.costs() && !fits(w, item.rest, automaton_->widest_finish(w.vocab(), Transport::Raw))) return false;
    w.add(w.keep(w.vocab().bases().run(node, {~uint64_t{0}, ~uint64_t{0}, true})).stay());
    return true;
  }
  if (is_near(w, node)) return false;
  const RegexBase& base = w.keep(bases_.get(w.vocab().bases(), node, d, w.costs()));
  if (w.costs() && !fits(w, item.rest, automaton_->widest(base, w.vocab(), Transport::Raw))) return false;
  w.add(base.stay);
  for (const TokenSet* set : base.shared) w.add(*set);
  if (item.rest != kEndOfText) w.pop_exits(base.exits(w.trie()), {}, item.rest);
  return true;
}

State RegexMachine::forget(Request&, State s, const Forget&) const {
  const auto d = static_cast<DfaState>(s >> kSubBits);
  return (State{d} << kSubBits) | forget_in(dfa_, d, sub_of(s), true);
}

// From the start, where digits are those of an integer: more and more of them are other numbers. (Of zeros behind a point, or
// in an exponent, that is not so.)
bool RegexMachine::endless(Request&, State s) const {
  if (s != start()) return false;
  DfaState d = dfa_.start();
  if (const DfaState minus = dfa_.next(d, '-'); minus != 0 && dfa_.next(d, '1') == 0) d = minus;
  for (int n = 0; n < 64 && d != 0; ++n) {
    const DfaState next = dfa_.next(d, '1');
    if (next == d) return true;
    d = next;
  }
  return false;
}

uint32_t RegexMachine::cost(Request& r, State s) const {
  return automaton_->finish(r.cost_unit(), r.vocab(), Transport::Raw, static_cast<DfaState>(s >> kSubBits), sub_of(s));
}

}  // namespace mw

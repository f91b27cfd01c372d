// Bases of regex states. A plain walk would visit every token that a wide class takes; instead, wherever a state loops
// or counts over one set S of characters, the tokens in S* come from the class base of S, and only the exits are walked
// (specs: prototype, design point 8 c and d).
#include <algorithm>
#include <array>
#include <bitset>
#include <unordered_map>

#include "bases.h"

namespace mw {
namespace {

constexpr uint32_t kChainMinDescendants = 1000;  // below this a plain walk is cheaper than a lookup
constexpr int kChainMinSet = 6;

// The characters of a chain: ASCII, and all or some of those beyond.
struct RunSet {
  CharSet129 set;
  const OtherChars& others;

  int size() const {
    return __builtin_popcountll(set.lo) + __builtin_popcountll(set.hi) + (set.other || !others.empty() ? 64 : 0);
  }
  // Whether the byte begins some character of the set.
  bool begins(uint8_t b) const {
    return b >= 0x80 ? set.other || !others.empty() : ((b < 64 ? set.lo >> b : set.hi >> (b - 64)) & 1u) != 0;
  }
  bool within(const Chain& chain) const {
    if ((set.lo & ~chain.set.lo) != 0 || (set.hi & ~chain.set.hi) != 0) return false;
    return chain.set.other || (!set.other && (others.empty() || others == chain.others));
  }
};

CharSet129 without_json_syntax(CharSet129 s) {
  s.lo &= ~0xffffffffull;          // control characters
  s.lo &= ~(1ull << '"');
  s.hi &= ~(1ull << ('\\' - 64));
  return s;
}

}  // namespace

class RegexBaseBuilder {
 public:
  RegexBaseBuilder(BaseStore& store, RegexDfa& dfa, Transport transport)
      : store_(store), trie_(store.trie()), dfa_(dfa), json_(transport != Transport::Raw),
        any_escapes_(transport == Transport::JsonAny) {}

  std::unique_ptr<RegexBase> build(RegexBases& bases, TrieNode node, DfaState state) {
    out_ = std::make_unique<RegexBase>();
    if (json_ && dfa_.is_total(state)) {
      take_total(node, state);
      return std::move(out_);
    }
    if (json_ && take_all_but(bases, node, state)) return std::move(out_);
    stack_.push_back({node, 0, state});
    while (!stack_.empty()) {
      const At at = stack_.back();
      stack_.pop_back();
      if (at.sub != 0 || !take_chain(at.node, at.state)) walk_children(at);
    }
    for (TokenId t : stay_)
      if (!words_.empty()) set_bit(words_.data(), t);
    out_->stay = words_.empty() ? TokenSet(std::move(stay_), store_.vocab_size()) : TokenSet(std::move(words_));
    out_->close = TokenSet(std::move(close_), store_.vocab_size());
    out_->knows_ends = true;
    out_->ends = each_once(std::move(ends_));
    out_->cut = each_once(std::move(cut_));
    return std::move(out_);
  }

 private:
  struct At {
    TrieNode node;
    Sub sub;
    DfaState state;
  };

  // An unanchored pattern takes any text: all that stays inside a string, and of what closes it, those that match.
  void take_total(TrieNode node, DfaState state) {
    const StringBase& body = store_.string(node, 0, any_escapes_);
    out_->shared = {&body.stay.all(), &body.cut.all()};
    std::unordered_map<TrieNode, At> at{{node, {node, 0, state}}};
    std::vector<TrieNode> path;
    for (TrieNode quote : body.quotes) {
      path.clear();
      TrieNode n = trie_.parent(quote);
      for (; !at.contains(n); n = trie_.parent(n)) path.push_back(n);
      At here = at[n];
      for (; !path.empty(); path.pop_back()) {
        const Decoded d = decode_json(here.sub, trie_.byte(path.back()), any_escapes_);
        here.node = path.back();
        here.sub = d.kind == Decoded::Partial ? d.value : 0;
        if (d.kind == Decoded::Char) here.state = dfa_.next(here.state, d.value);
        at.emplace(here.node, here);
      }
      step(quote, '"', here.sub, here.state);
    }
    out_->close = TokenSet(std::move(close_), store_.vocab_size());
  }

  // Few texts are left out, or long ones only: what the whole language has, mended along them.
  bool take_all_but(RegexBases& bases, TrieNode node, DfaState state) {
    const DfaState whole = dfa_.without_exceptions(state);
    Exceptions left_out(*this);
    if (whole == state || !left_out.find(node, state, whole)) return false;
    const TokenSet* close = nullptr;
    const std::vector<ExitTrie::Member>* exits = nullptr;
    if (dfa_.is_universal(whole)) {
      StringBase& body = store_.string(node, 0, any_escapes_);
      out_->shared = {&body.stay.all(), &body.cut.all()};
      out_->body_ = &body;
      close = &body.close.all();
      exits = &body.exits.members();
    } else {
      out_->whole_ = bases.get(store_, node, whole);
      out_->shared = out_->whole_->shared;
      out_->shared.push_back(&out_->whole_->stay);
      close = &out_->whole_->close;
      exits = &out_->whole_->exits(trie_).members();
    }
    if (!left_out.tokens.empty()) leave_out(left_out.tokens);
    close_ = close->without(std::move(left_out.closing));
    out_->close = TokenSet(std::move(close_), store_.vocab_size());
    out_->members_ = *exits;
    const size_t before = out_->members_.size();
    std::erase_if(out_->members_, [&](const ExitTrie::Member& m) { return left_out.holds(m.node); });
    out_->own_exits_ = out_->members_.size() != before;
    if (out_->own_exits_) out_->body_ = nullptr;
    else out_->members_.clear();  // the exits are those of the whole
    return true;
  }

  // Where a language and the same less some texts differ.
  class Exceptions {
   public:
    explicit Exceptions(RegexBaseBuilder& b) : b_(b), trie_(b.trie_), dfa_(b.dfa_) {}
    std::vector<TokenId> tokens, closing;  // that are left out: inside, and with the closing quote
    bool holds(TrieNode n) const {
      return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& r) { return r.first <= n && n < r.second; });
    }

    // False: they differ in too many places.
    bool find(TrieNode node, DfaState state, DfaState whole) {
      constexpr int kMost = 6000;
      stack_.push_back({node, 0, state, whole});
      for (int n = 0; !stack_.empty(); ++n) {
        if (n == kMost) return false;
        const Both at = stack_.back();
        stack_.pop_back();
        for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) step(c, at);
      }
      return true;
    }

   private:
    struct Both {
      TrieNode node;
      Sub sub;
      DfaState state, whole;
    };

    void step(TrieNode c, const Both& at) {
      const Decoded d = decode_json(at.sub, trie_.byte(c), b_.any_escapes_);
      if (d.kind == Decoded::Dead) return;
      if (d.kind == Decoded::Quote) {
        if (!dfa_.accepting(at.state)) leave_out(c, closing);
      } else if (d.kind == Decoded::Partial) {
        const auto live = [&](uint32_t lo, uint32_t hi) { return dfa_.any_live_in(at.state, lo, hi); };
        if (!partial_is_live(d.value, b_.any_escapes_, live)) leave_out(c, tokens);
        else go_on({c, d.value, at.state, at.whole});
      } else {
        const DfaState state = dfa_.next(at.state, d.value), whole = dfa_.next(at.whole, d.value);
        if (state == whole) return;
        if (state == 0) leave_out(c, tokens);
        else go_on({c, 0, state, whole});
      }
    }

    // Where tokens are long enough for a difference. (In other languages than ALL a state may be dead before: where nothing is
    // left but what is left out.)
    void go_on(const Both& at) {
      if (trie_.child_count(at.node) == 0) return;
      if (!dfa_.is_universal(at.whole)) return stack_.push_back(at);
      const auto [it, fresh] = distances_.try_emplace(at.state, 0);
      if (fresh) it->second = dfa_.exception_distance(at.state);
      const uint32_t height = b_.store_.marks().height(at.node);
      if (it->second <= height + (at.sub != 0 ? 1 : 0) || height == 255) stack_.push_back(at);
    }

    // The token that ends here, and all that go on.
    void leave_out(TrieNode c, std::vector<TokenId>& out) {
      for (const TokenId t : trie_.tokens(c)) out.push_back(t);
      ranges_.emplace_back(c, c + 1);
      if (trie_.child_count(c) == 0) return;
      ranges_.emplace_back(trie_.first_child(c), trie_.end(c));
      if (&out == &closing) return;  // what is behind the quote is an exit
      for (TrieNode n = trie_.first_child(c); n < trie_.end(c); ++n)
        for (const TokenId t : trie_.tokens(n)) {
          tokens.push_back(t);
          closing.push_back(t);
        }
    }

    RegexBaseBuilder& b_;
    const TokenTrie& trie_;
    RegexDfa& dfa_;
    std::vector<Both> stack_;
    std::unordered_map<DfaState, int64_t> distances_;
    std::vector<std::pair<TrieNode, TrieNode>> ranges_;
  };

  // Takes tokens out of what stays inside; it is then a set of its own.
  void leave_out(const std::vector<TokenId>& tokens) {
    words_.assign(words_for(store_.vocab_size()), 0);
    for (const TokenSet* set : out_->shared) {
      for (size_t i = 0; i < set->words().size(); ++i) words_[i] |= set->words()[i];
      for (const TokenId t : set->list()) set_bit(words_.data(), t);
    }
    for (const TokenId t : tokens) clear_bit(words_.data(), t);
    out_->shared.clear();
    out_->stay = TokenSet(std::move(words_));
  }

  void walk_children(const At& at) {
    for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c)
      step(c, trie_.byte(c), at.sub, at.state);
  }

  // Reads one byte into trie node c.
  void step(TrieNode c, uint8_t b, Sub sub, DfaState state) {
    if (sub == 0 && b >= 0x20 && b < 0x80 && b != '"' && b != '\\') {  // itself, in either transport
      const DfaState next = dfa_.next(state, b);
      if (next != 0) reach(c, 0, next);
      return;
    }
    const Decoded d = json_ ? decode_json(sub, b, any_escapes_) : decode_utf8(sub, b);
    if (d.kind == Decoded::Dead) return;
    if (d.kind == Decoded::Quote) {
      if (!dfa_.accepting(state)) return;
      for (TokenId t : trie_.tokens(c)) close_.push_back(t);
      if (trie_.child_count(c)) out_->members_.push_back({c, 0});
      return;
    }
    if (d.kind == Decoded::Partial) {
      if (partial_is_live(d.value, any_escapes_,
                          [&](uint32_t lo, uint32_t hi) { return dfa_.any_live_in(state, lo, hi); }))
        reach(c, d.value, state);
      return;
    }
    const DfaState next = dfa_.next(state, d.value);
    if (next != 0) reach(c, 0, next);
  }

  void reach(TrieNode c, Sub sub, DfaState state) {
    for (TokenId t : trie_.tokens(c)) stay_.push_back(t);
    if (trie_.has_tokens(c)) end(sub, state);
    if (trie_.child_count(c) == 0) return;
    if (!json_ && sub == 0 && dfa_.accepting(state)) out_->members_.push_back({c, 0});
    if (json_ || sub != 0 || dfa_.has_next(state)) stack_.push_back({c, sub, state});
  }

  void end(Sub sub, DfaState state) {
    std::vector<DfaState>& where = sub == 0 ? ends_ : cut_;
    if (where.empty() || where.back() != state) where.push_back(state);
  }

  static std::vector<DfaState> each_once(std::vector<DfaState> states) {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
    return states;
  }

  // Where the state runs over one set S of characters: all of S* at once, then only what leaves it.
  bool take_chain(TrieNode node, DfaState state) {
    if (trie_.descendants(node) < kChainMinDescendants) return false;
    const RunSet set = lasting(state);
    if (set.size() < kChainMinSet) return false;
    const std::shared_ptr<const ClassBase> run = store_.run(node, set.set, set.others);
    const ClassBase& base = *run;
    const Trail states = follow(state, set, base);
    if (states.last() == 0) return false;
    add(run, states.loops ? base.stay() : base.stay_up_to(states.last()));
    for (const uint32_t k : base.counts())
      if (states.reaches(k)) end(0, states.after(k));
    if (set.set.other || !set.others.empty()) cut_.insert(cut_.end(), states.at.begin(), states.at.end());
    leave(base, set, states);
    if (!states.loops) go_on_from(base, set, states);
    if (!json_) accept_run(run, states);
    return true;
  }

  // The largest set of characters that lead to one state. Where that goes on with some of them otherwise (`\S+@`, where the
  // first character may be an @), those that do not: else the chain would be one character long, and its end a chain more for
  // each.
  RunSet lasting(DfaState state) {
    const auto plain = [&](const Chain& c) { return json_ ? without_json_syntax(c.set) : c.set; };
    const Chain& first = dfa_.widest(state);
    const RunSet set{plain(first), first.others};
    if (first.next == 0 || first.next == state) return set;
    const Chain& second = dfa_.widest(first.next);
    if (second.next == 0 || set.within(second)) return set;
    static const OtherChars none;
    const bool same = !first.set.other && !second.set.other && first.others == second.others;
    const RunSet both{{set.set.lo & second.set.lo, set.set.hi & second.set.hi, first.set.other && second.set.other},
                      first.set.other ? second.others : second.set.other || same ? first.others : none};
    return 2 * both.size() >= set.size() ? both : set;
  }

  // States after 0, 1, 2, ... characters of S, as long as all of S leads to one live state.
  struct Trail {
    std::vector<DfaState> at;
    bool loops = false;  // the last one leads to itself, so it stands for all that follow
    uint32_t last() const { return static_cast<uint32_t>(at.size() - 1); }
    bool reaches(uint32_t k) const { return loops || k <= last(); }
    DfaState after(uint32_t k) const { return at[std::min(k, last())]; }
  };
  Trail follow(DfaState state, const RunSet& set, const ClassBase& base) {
    constexpr size_t kUnbounded = 4;  // so many states are followed without asking how long runs get
    Trail states{{state}};
    while (states.at.size() <= kUnbounded || states.at.size() <= base.deepest()) {
      const Chain& chain = dfa_.widest(states.at.back());
      if (chain.next == 0 || !set.within(chain)) break;
      states.loops = chain.next == states.at.back();
      if (states.loops) break;
      states.at.push_back(chain.next);
    }
    if (states.loops && states.at.size() == 1) states.at.push_back(state);
    return states;
  }

  void leave(const ClassBase& base, const RunSet& set, const Trail& states) {
    std::vector<std::array<uint64_t, 2>> live(states.at.size());
    std::array<uint64_t, 2> any{};
    bool any_other = false;
    for (size_t k = 0; k < states.at.size(); ++k) {
      if (k > 0 && states.at[k] == states.at[k - 1]) live[k] = live[k - 1];
      else dfa_.live_ascii(states.at[k], live[k].data());
      for (size_t i = 0; i < 2; ++i) any[i] |= live[k][i];
      any_other = any_other || dfa_.any_live_in(states.at[k], 0x80, kLastCodePoint);
    }
    const auto is_syntax = [&](unsigned b) { return json_ && (b == '"' || b == '\\'); };
    std::bitset<256> exits;
    for (unsigned b = 0; b < 256; ++b) {
      if (set.begins(static_cast<uint8_t>(b))) continue;
      exits[b] = is_syntax(b) || (b >= 0x80 ? any_other : ((any[b / 64] >> (b % 64)) & 1u) != 0);
    }
    base.each_exit(exits, [&](TrieNode c, uint8_t b, uint32_t k) {
      if (!states.reaches(k)) return;
      const size_t i = std::min(k, states.last());
      if (is_syntax(b) || b >= 0x80 || ((live[i][b / 64] >> (b % 64)) & 1u) != 0) step(c, b, 0, states.at[i]);
    });
    leave_beyond_ascii(base, states);
  }

  // Where the set has some characters beyond ASCII only: the others one by one, and the tokens cut inside any of them.
  void leave_beyond_ascii(const ClassBase& base, const Trail& states) {
    for (const ClassBase::Other& other : base.others()) {
      if (!states.reaches(other.chars)) continue;
      const DfaState next = dfa_.next(states.after(other.chars), other.code_point);
      if (next != 0) reach(other.node, 0, next);
    }
    for (const ClassBase::Cut& cut : base.cuts()) {
      if (!states.reaches(cut.chars)) continue;
      const auto live = [&](uint32_t lo, uint32_t hi) { return dfa_.any_live_in(states.after(cut.chars), lo, hi); };
      if (partial_is_live(cut.sub, any_escapes_, live)) stay_.push_back(cut.token);
    }
  }

  // The chain ended before the longest run of S: the nodes at its end go on by single characters, where some of S may still
  // come. (Where a length is used up, none may: then the many nodes need not be looked at.)
  void go_on_from(const ClassBase& base, const RunSet& set, const Trail& states) {
    const uint32_t last = states.last();
    uint64_t live[2];
    dfa_.live_ascii(states.at[last], live);
    const bool others = set.begins(0x80) && dfa_.any_live_in(states.at[last], 0x80, kLastCodePoint);
    if (((live[0] & set.set.lo) | (live[1] & set.set.hi)) == 0 && !others) return;
    if (last >= base.deepest()) return;
    base.each_end([&](TrieNode n, uint32_t k) {
      if (k != last) return;
      for (TrieNode c = trie_.first_child(n), e = c + trie_.child_count(n); c < e; ++c)
        if (set.begins(trie_.byte(c))) step(c, trie_.byte(c), 0, states.at[last]);
    });
  }

  // The node itself was reached by step(), which has recorded it.
  void accept_run(const std::shared_ptr<const ClassBase>& base, const Trail& states) {
    RegexBase::Run run{base, {}, states.loops};
    for (const DfaState state : states.at) run.accepts.push_back(dfa_.accepting(state));
    if (std::find(run.accepts.begin() + 1, run.accepts.end(), true) != run.accepts.end())
      out_->runs_.push_back(std::move(run));
  }

  // Large sets are referred to where they are few: copying one takes as long as a small mask.
  void add(const std::shared_ptr<const ClassBase>& owner, const TokenSet& set) {
    constexpr size_t kShared = 2;
    if (!set.dense()) {
      stay_.insert(stay_.end(), set.list().begin(), set.list().end());
    } else if (out_->shared.size() < kShared) {
      out_->shared.push_back(&set);
      out_->held_.push_back(owner);
    } else {
      if (words_.empty()) words_.assign(set.words().size(), 0);
      for (size_t i = 0; i < words_.size(); ++i) words_[i] |= set.words()[i];
    }
  }

  BaseStore& store_;
  const TokenTrie& trie_;
  RegexDfa& dfa_;
  bool json_, any_escapes_;
  std::unique_ptr<RegexBase> out_;
  std::vector<At> stack_;
  std::vector<TokenId> stay_, close_;
  std::vector<DfaState> ends_, cut_;
  Words words_;
};

ExitTrie& RegexBase::exits(const TokenTrie& trie) const {
  if (body_ != nullptr) return body_->exits;
  if (whole_ && !own_exits_) return whole_->exits(trie);
  std::call_once(once_, [&] {
    for (const Run& run : runs_)
      run.base->each_end([&](TrieNode n, uint32_t k) {
        const size_t last = run.accepts.size() - 1;
        if ((k <= last || run.goes_on) && run.accepts[std::min<size_t>(k, last)] && trie.child_count(n))
          members_.push_back({n, 0});
      });
    std::sort(members_.begin(), members_.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
    exits_ = std::make_unique<ExitTrie>(trie, std::move(members_));
  });
  return *exits_;
}

size_t RegexBase::bytes_used() const {
  constexpr size_t kBehindAnExit = 64;
  return sizeof(RegexBase) + stay.bytes_used() + close.bytes_used() + (ends.capacity() + cut.capacity()) * sizeof(DfaState) +
         members_.capacity() * kBehindAnExit;
}

std::shared_ptr<const RegexBase> RegexBases::find(uint64_t key, bool own) {
  const std::shared_lock lock(mutex_);
  const auto it = bases_[own].find(key);
  return it != bases_[own].end() ? it->second : nullptr;
}

std::shared_ptr<const RegexBase> RegexBases::keep(uint64_t key, bool own, std::shared_ptr<const RegexBase> base) {
  const std::unique_lock lock(mutex_);
  return bases_[own].try_emplace(key, std::move(base)).first->second;
}

// States that differ in counts alone which no token can use up share a base.
std::shared_ptr<const RegexBase> RegexBases::get(BaseStore& store, TrieNode node, DfaState state, bool own) {
  const auto key_of = [&](DfaState s) { return (static_cast<uint64_t>(node) << 32) | s; };
  if (auto known = find(key_of(state), own)) return known;
  const DfaState near = dfa_->near(state, store.most_chars());
  const bool apart = own && near != state;
  const DfaState model = apart ? state : near;
  if (auto known = find(key_of(model), apart)) return keep(key_of(state), own, std::move(known));
  std::call_once(joined_, [&] {
    cache_ = store.cache();
    cache_->join(this);
  });
  std::shared_ptr<const RegexBase> made = RegexBaseBuilder(store, *dfa_, transport_).build(*this, node, model);
  cache_->charge(made->bytes_used());
  made = keep(key_of(model), apart, std::move(made));
  return keep(key_of(state), own, std::move(made));
}

void RegexBases::drop() {
  const std::unique_lock lock(mutex_);
  for (auto& bases : bases_) bases.clear();
}

}  // namespace mw

#include "bases.h"

#include <algorithm>

#include "white_space.h"

namespace mw {

// A counting sort: the sets have up to a hundred thousand tokens and a few dozen counts.
CountedTokens::CountedTokens(const std::vector<Entry>& entries, size_t vocab_size) : vocab_size_(vocab_size) {
  for (const Entry& e : entries) max_chars_ = std::max(max_chars_, e.chars);
  std::vector<uint32_t> at(entries.empty() ? 0 : max_chars_ + 1, 0);
  for (const Entry& e : entries) ++at[e.chars];
  uint32_t sum = 0;
  for (uint32_t k = 0; k < at.size(); ++k) {
    const uint32_t n = at[k];
    if (n > 0) {
      counts_.push_back(k);
      begin_.push_back(sum);
    }
    at[k] = sum;
    sum += n;
  }
  begin_.push_back(sum);
  tokens_.resize(entries.size());
  for (const Entry& e : entries) tokens_[at[e.chars]++] = e.token;
  all_ = TokenSet(tokens_, vocab_size);
}

// As a text nears its bound, one count is asked for after the other, nearly always with fewer tokens left out than in: so a
// set is made of the next larger one that is known, or of all tokens.
std::unique_ptr<TokenSet> CountedTokens::make_up_to(uint32_t chars) const {
  const auto within = between(0, chars);
  const auto larger = cumulative_.upper_bound(chars);
  const bool known = larger != cumulative_.end();
  const TokenSet& from = known ? *larger->second : all_;
  const auto beyond = between(chars + 1, known ? larger->first : max_chars_);
  if (!from.dense() || within.size() < beyond.size())
    return std::make_unique<TokenSet>(std::vector<TokenId>(within.begin(), within.end()), vocab_size_);
  Words words = from.words();
  for (const TokenId t : beyond) clear_bit(words.data(), t);
  return std::make_unique<TokenSet>(std::move(words));
}

CountedTokens::CountedTokens(image::Reader& in, size_t vocab_size) : vocab_size_(vocab_size) {
  const auto tokens = in.take<TokenId>();
  const auto counts = in.take<uint32_t>(), begin = in.take<uint32_t>();
  const bool sound = begin.size() == counts.size() + 1 && begin.back() == tokens.size() && std::is_sorted(begin.begin(), begin.end()) &&
                     std::is_sorted(counts.begin(), counts.end()) &&
                     std::all_of(tokens.begin(), tokens.end(), [&](TokenId t) { return t < vocab_size; });
  if (!in.good() || !sound) {
    in.reject();
    return;
  }
  tokens_.assign(tokens.begin(), tokens.end());
  counts_.assign(counts.begin(), counts.end());
  begin_.assign(begin.begin(), begin.end());
  max_chars_ = counts_.empty() ? 0 : counts_.back();
  all_ = TokenSet(tokens_, vocab_size);
}

void CountedTokens::save(image::Writer& out) const {
  out.put(std::span(tokens_));
  out.put(std::span(counts_));
  out.put(std::span(begin_));
}

std::span<const TokenId> CountedTokens::between(uint32_t lo, uint32_t hi) const {
  if (lo > hi) return {};
  const auto i = static_cast<size_t>(std::lower_bound(counts_.begin(), counts_.end(), lo) - counts_.begin());
  const auto j = static_cast<size_t>(std::upper_bound(counts_.begin(), counts_.end(), hi) - counts_.begin());
  return std::span(tokens_).subspan(begin_[i], begin_[j] - begin_[i]);
}

const TokenSet& CountedTokens::up_to(uint32_t chars) const {
  if (chars >= max_chars_) return all_;
  const std::scoped_lock lock(mutex_);
  const auto found = cumulative_.find(chars);
  return found != cumulative_.end() ? *found->second : *cumulative_.emplace(chars, make_up_to(chars)).first->second;
}

template <class Key, class Base, class Make>
Base& BaseStore::lookup(std::map<Key, std::unique_ptr<Base>>& bases, const Key& key, Make make) {
  {
    const std::shared_lock lock(mutex_);
    const auto it = bases.find(key);
    if (it != bases.end()) return *it->second;
  }
  auto made = make();  // outside the lock: losing a race repeats work, never breaks it
  const std::unique_lock lock(mutex_);
  return *bases.try_emplace(key, std::move(made)).first->second;
}

StringBase& BaseStore::string(TrieNode node, Sub sub, bool any_escapes) {
  return lookup(strings_, std::tuple(node, sub, any_escapes), [&] { return make_string(node, sub, any_escapes); });
}

std::shared_ptr<const ClassBase> BaseStore::run(TrieNode node, const CharSet129& set, const OtherChars& others) {
  const std::tuple key(node, set.lo, set.hi, set.other, others);
  {
    const std::shared_lock lock(mutex_);
    const auto it = runs_.find(key);
    if (it != runs_.end()) return it->second;
  }
  constexpr uint32_t kManyBelow = 5000;
  const CharSet129 every{~uint64_t{0}, ~uint64_t{0}, true};
  const bool narrows = set.lo != every.lo || set.hi != every.hi || !set.other;
  const std::shared_ptr<const ClassBase> made =
      node == TokenTrie::kRoot && ascii_runs_.suits(set, others)
          ? std::make_shared<const ClassBase>(*trie_, marks_, vocab_size_, ascii_runs_, set)
      : narrows && trie_->descendants(node) >= kManyBelow && ClassBase::is_wide(set, others)
          ? std::make_shared<const ClassBase>(*run(node, every), set, others)
          : std::make_shared<const ClassBase>(*trie_, marks_, vocab_size_, node, set, others);
  cache_->charge(made->bytes_used());
  const std::unique_lock lock(mutex_);
  return runs_.try_emplace(key, made).first->second;
}

void BaseStore::drop() {
  const std::unique_lock lock(mutex_);
  runs_.clear();
}

void BaseStore::prepare() {
  marks_.build(*trie_, vocab_size_);
  keep_bodies();
}

// What nearly every schema asks for first, and asks a mask for: it takes milliseconds.
void BaseStore::keep_bodies() {
  constexpr size_t kLarge = 20000;
  if (trie_->size() < kLarge) return;
  for (const bool any_escapes : {false, true}) string(TokenTrie::kRoot, 0, any_escapes);
  run(TokenTrie::kRoot, {~uint64_t{0}, ~uint64_t{0}, true});
}

void BaseStore::save(image::Writer& out) {
  marks_.save(out);
  for (const bool any_escapes : {false, true}) string(TokenTrie::kRoot, 0, any_escapes).save(out);
  AsciiRuns::save(out, *trie_, marks_, vocab_size_);
}

bool BaseStore::load(image::Reader& in) {
  if (!marks_.load(in, *trie_, vocab_size_)) return false;
  for (const bool any_escapes : {false, true}) {
    auto body = StringBase::load(in, *trie_, vocab_size_);
    if (!body) {
      strings_.clear();
      return false;
    }
    strings_[{TokenTrie::kRoot, 0, any_escapes}] = std::move(body);
  }
  if (!ascii_runs_.load(in, *trie_, vocab_size_)) {
    strings_.clear();
    ascii_runs_ = {};
    return false;
  }
  keep_bodies();
  return true;
}

SpaceBase& BaseStore::space(int policy, uint32_t state) {
  return lookup(spaces_, std::tuple(policy, state), [&] { return make_space(policy, state); });
}

std::unique_ptr<StringBase> BaseStore::make_string(TrieNode node, Sub sub, bool any_escapes) const {
  struct At {
    TrieNode node;
    Sub sub;
    uint32_t chars;
  };
  std::vector<CountedTokens::Entry> stay, close, cut;
  std::vector<StringBase::Cut> cuts;
  std::vector<ExitTrie::Member> exits;
  std::vector<TrieNode> quotes;
  std::vector<At> stack{{node, sub, 0}};
  while (!stack.empty()) {
    const At at = stack.back();
    stack.pop_back();
    for (TrieNode c = trie_->first_child(at.node), e = c + trie_->child_count(at.node); c < e; ++c) {
      const uint8_t b = trie_->byte(c);
      const bool plain = at.sub == 0 && b >= 0x20 && b < 0x80 && b != '"' && b != '\\';
      const Decoded d = plain ? Decoded{Decoded::Char, b} : decode_json(at.sub, b, any_escapes);
      if (d.kind == Decoded::Dead) continue;
      if (d.kind == Decoded::Quote) {
        quotes.push_back(c);
        for (TokenId t : trie_->tokens(c)) close.push_back({at.chars, t});
        if (trie_->child_count(c)) exits.push_back({c, at.chars});
        continue;
      }
      const uint32_t chars = at.chars + (at.sub == 0 ? 1 : 0);
      const Sub after = d.kind == Decoded::Partial ? d.value : 0;
      for (TokenId t : trie_->tokens(c)) {
        (after == 0 ? stay : cut).push_back({chars, t});
        if (after != 0) cuts.push_back({t, after, chars});
      }
      if (trie_->child_count(c)) stack.push_back({c, after, chars});
    }
  }
  auto made = std::unique_ptr<StringBase>(new StringBase{{stay, vocab_size_}, {close, vocab_size_}, {cut, vocab_size_},
                                                         std::move(cuts), {}, std::move(quotes), {*trie_, std::move(exits)}});
  made->unite(vocab_size_);
  return made;
}

void StringBase::unite(size_t vocab_size) {
  std::vector<TokenId> tokens;
  for (const CountedTokens* part : {&stay, &close, &cut}) {
    const auto some = part->between(0, part->max_chars());
    tokens.insert(tokens.end(), some.begin(), some.end());
  }
  all = TokenSet(std::move(tokens), vocab_size);
}

void StringBase::save(image::Writer& out) const {
  for (const CountedTokens* part : {&stay, &close, &cut}) part->save(out);
  out.put(std::span(cuts));
  out.put(std::span(quotes));
  out.put(std::span(exits.members()));
}

std::unique_ptr<StringBase> StringBase::load(image::Reader& in, const TokenTrie& trie, size_t vocab_size) {
  auto made = std::unique_ptr<StringBase>(new StringBase{{in, vocab_size}, {in, vocab_size}, {in, vocab_size}, in.copy<Cut>(), {},
                                                         in.copy<TrieNode>(), {trie, in.copy<ExitTrie::Member>()}});
  const auto all = [](const auto& items, auto test) { return std::all_of(items.begin(), items.end(), test); };
  const bool sound = all(made->cuts, [&](const Cut& c) { return c.token < vocab_size; }) &&
                     all(made->quotes, [&](TrieNode n) { return 0 < n && n < trie.size(); }) &&
                     all(made->exits.members(), [&](const ExitTrie::Member& m) { return m.node < trie.size(); });
  if (!in.good() || !sound) return nullptr;
  made->unite(vocab_size);
  return made;
}

std::unique_ptr<SpaceBase> BaseStore::make_space(int policy, uint32_t state) const {
  struct At {
    TrieNode node;
    uint32_t state;
  };
  std::vector<TokenId> stay;
  std::vector<ExitTrie::Member> exits;
  std::vector<At> stack{{TokenTrie::kRoot, state}};
  while (!stack.empty()) {
    const At at = stack.back();
    stack.pop_back();
    for (uint8_t b : {uint8_t{' '}, uint8_t{'\n'}, uint8_t{'\t'}, uint8_t{'\r'}}) {
      const TrieNode c = trie_->child(at.node, b);
      if (c == kNoNode) continue;
      const uint32_t next = next_space(static_cast<Whitespace>(policy), at.state, b);
      if (next == kSpaceDead) continue;
      for (TokenId t : trie_->tokens(c)) stay.push_back(t);
      if (trie_->child_count(c)) {
        exits.push_back({c, 0});
        stack.push_back({c, next});
      }
    }
  }
  return std::unique_ptr<SpaceBase>(new SpaceBase{TokenSet(std::move(stay), vocab_size_), {*trie_, std::move(exits)}});
}

}  // namespace mw

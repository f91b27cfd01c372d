#include "bases.h"

#include <array>

#include "base_builder.h"

namespace mw::lark {

Place::~Place() {
  if (Entries* all = entries_.load(std::memory_order_relaxed)) {
    for (size_t i = 0; i < all->count; ++i) delete all->all[i].base.load(std::memory_order_relaxed);
    delete all;
  }
  for (Link* at = links_.load(std::memory_order_relaxed); at != nullptr;) {
    Link* next = at->next;
    delete at->base;
    delete at;
    at = next;
  }
}

ExitTrie& Place::exits(const TokenTrie& trie, Lexer& lexer) {
  std::call_once(exits_once_, [&] {
    std::vector<ExitTrie::Member> roots;
    for (const TrieNode n : members_) roots.push_back({n, 0});
    std::bitset<256> firsts;
    for (uint32_t b = 0; b < 256; ++b) firsts.set(b, lexer.next_guards(guards_, static_cast<uint8_t>(b)) != kVoidGuards);
    exits_ = std::make_unique<ExitTrie>(trie, std::move(roots), firsts);
  });
  return *exits_;
}

// One builder for each thread at a time.
class LarkBases::Lease {
 public:
  Lease(LarkBases& bases, const Over& over) : bases_(bases) {
    const std::scoped_lock lock(bases.builders_mutex_);
    if (bases.builders_.empty()) bases.builders_.push_back(std::make_unique<BaseBuilder>(over));
    builder_ = std::move(bases.builders_.back());
    bases.builders_.pop_back();
  }
  ~Lease() {
    const std::scoped_lock lock(bases_.builders_mutex_);
    bases_.builders_.push_back(std::move(builder_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  BaseBuilder* operator->() const { return builder_.get(); }

 private:
  LarkBases& bases_;
  std::unique_ptr<BaseBuilder> builder_;
};

LarkBases::LarkBases() = default;
LarkBases::~LarkBases() = default;

const LexBase& LarkBases::get(const Over& over, TrieNode node, LexState q, Guards g, int32_t column, bool sorted) {
  const Key key{node, q, g, column, sorted};
  {
    const std::shared_lock lock(mutex_);
    const auto hit = bases_.find(key);
    if (hit != bases_.end()) return *hit->second;
  }
  const Lease builder(*this, over);
  builder->walk(node, q, g, column, sorted);
  auto made = builder->finish(*this, over, sorted);
  const std::unique_lock lock(mutex_);
  return *bases_.try_emplace(key, std::move(made)).first->second;
}

const LexBase& LarkBases::get(const Over& over, Place& place, LexState q) {
  Place::Link* head = place.links_.load(std::memory_order_acquire);
  for (Place::Link* at = head; at != nullptr; at = at->next)
    if (at->q == q) return *at->base;
  const Lease builder(*this, over);
  builder->walk(place, q);
  auto* link = new Place::Link{q, builder->finish(*this, over, true).release(), head};
  while (!place.links_.compare_exchange_weak(link->next, link, std::memory_order_acq_rel)) {
  }
  return *link->base;
}

const std::vector<LexBase::Part>& LarkBases::parts(const Over& over, const LexBase::Group& group) const {
  std::call_once(group.once, [&] {
    std::map<const Lexer::Reach*, std::vector<const LexBase::Stay*>> by_reach;
    for (const auto& stay : group.stays) by_reach[&over.lexer.reach(stay.q)].push_back(&stay);
    for (const auto& [reach, stays] : by_reach) {
      TokenCollector all(over.vocab_size);
      auto& made = group.parts.emplace_back(LexBase::Part{reach, {}, {}});
      for (const auto* stay : stays) {
        std::vector<TokenId> tokens = stay->tokens.list();
        if (stay->tokens.dense())
          for (size_t t = 0; t < over.vocab_size; ++t)
            if (test_bit(stay->tokens.words().data(), static_cast<TokenId>(t))) tokens.push_back(static_cast<TokenId>(t));
        all.add(tokens);
        if (over.indents) made.stays.push_back(*stay);
      }
      made.tokens = all.finish();
    }
  });
  return group.parts;
}

Place& LarkBases::place(const Over& over, std::vector<TrieNode> members, Guards g) {
  uint64_t h = mix(73, g);
  for (const TrieNode n : members) h = mix(h, n);
  const std::scoped_lock lock(places_mutex_);
  const auto [from, to] = places_.equal_range(h);
  for (auto it = from; it != to; ++it)
    if (it->second->guards() == g && it->second->members() == members) return *it->second;
  std::vector<TrieNode> children = children_of(over, members, g);
  return *places_.emplace(h, std::make_unique<Place>(std::move(members), std::move(children), g))->second;
}

// A counting sort by byte.
std::vector<TrieNode> LarkBases::children_of(const Over& over, const std::vector<TrieNode>& members, Guards g) {
  const TokenTrie& trie = over.trie;
  std::array<bool, 256> allowed{};
  for (uint32_t b = 0; b < 256; ++b) allowed[b] = over.lexer.next_guards(g, static_cast<uint8_t>(b)) != kVoidGuards;
  std::array<uint32_t, 257> at{};
  const auto each = [&](auto f) {
    for (const TrieNode n : members)
      for (TrieNode c = trie.first_child(n), e = c + trie.child_count(n); c < e; ++c)
        if (allowed[trie.byte(c)]) f(c);
  };
  each([&](TrieNode c) { ++at[trie.byte(c) + 1u]; });
  for (size_t b = 1; b <= 256; ++b) at[b] += at[b - 1];
  std::vector<TrieNode> children(at[256]);
  each([&](TrieNode c) { children[at[trie.byte(c)]++] = c; });
  return children;
}

void LarkBases::find_firsts(const Over& over) {
  by_byte_.resize(256);
  for (Type t = 0; t < over.lexer.type_count(); ++t) {
    starts_.push_back(over.lexer.start_of(t));
    for (uint32_t b = 0; b < 256; ++b)
      if (over.lexer.next(starts_.back(), static_cast<uint8_t>(b)) != 0) by_byte_[b].push_back(t);
  }
}

std::span<Place::Entry> LarkBases::entries(const Over& over, Place& place) {
  if (const auto* known = place.entries_.load(std::memory_order_acquire)) return {known->all.get(), known->count};
  std::call_once(firsts_once_, [&] { find_firsts(over); });
  std::vector<bool> had(starts_.size(), false);
  std::vector<Type> types;
  int last = -1;
  for (const TrieNode c : place.children_) {
    const uint8_t b = over.trie.byte(c);
    if (b == last) continue;
    last = b;
    for (const Type t : by_byte_[b])
      if (!had[t]) {
        had[t] = true;
        types.push_back(t);
      }
  }
  auto made = std::make_unique<Place::Entries>();
  made->count = types.size();
  made->all = std::make_unique<Place::Entry[]>(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    made->all[i].type = types[i];
    made->all[i].start = starts_[types[i]];
  }
  Place::Entries* none = nullptr;
  Place::Entries* kept = made.get();
  if (place.entries_.compare_exchange_strong(none, kept, std::memory_order_acq_rel)) made.release();
  else kept = none;
  return {kept->all.get(), kept->count};
}

const LexBase& LarkBases::get(const Over& over, Place& place, Place::Entry& entry) {
  if (const LexBase* known = entry.base.load(std::memory_order_acquire)) return *known;
  const Lease builder(*this, over);
  builder->walk(place, entry.start);
  auto made = builder->finish(*this, over, true);
  const LexBase* none = nullptr;
  if (entry.base.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *none;
}

}  // namespace mw::lark

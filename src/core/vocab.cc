#include "vocab.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace mw {
namespace {

std::atomic<uint64_t> next_serial{1};

std::string joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& t : tokens) all += t;
  return all;
}

std::vector<uint32_t> lengths_of(const std::vector<std::string>& tokens) {
  std::vector<uint32_t> all;
  for (const std::string& t : tokens) all.push_back(static_cast<uint32_t>(t.size()));
  return all;
}

bool occurs_in_utf8(unsigned b) { return b < 0xc0 || (b >= 0xc2 && b <= 0xf4); }

}  // namespace

Vocab::Vocab(const std::vector<std::string>& tokens, std::vector<uint8_t> kinds, std::vector<TokenId> eos)
    : Vocab(joined(tokens), lengths_of(tokens), std::move(kinds), std::move(eos), {}, {}) {}

Vocab::Vocab(std::string blob, std::span<const uint32_t> lengths, std::vector<uint8_t> kinds, std::vector<TokenId> eos,
             std::span<const char> image, std::string_view key)
    : blob_(std::move(blob)), kinds_(std::move(kinds)), eos_(std::move(eos)), serial_(next_serial++), bases_(trie_, kinds_.size()) {
  offsets_.resize(lengths.size() + 1, 0);
  std::inclusive_scan(lengths.begin(), lengths.end(), offsets_.begin() + 1);
  std::sort(eos_.begin(), eos_.end());
  for (TokenId t : eos_) kinds_[t] = 1;
  image::Reader in(image, key);
  from_image_ = trie_.load(in, size()) && bases_.load(in);
  if (!from_image_) build();
  look_at_bytes();
}

void Vocab::build() {
  std::vector<std::string_view> views;
  std::vector<TokenId> ids;
  for (TokenId t = 0; t < size(); ++t)
    if (is_text(t)) {
      views.push_back(bytes(t));
      ids.push_back(t);
    }
  trie_.build(views, ids);
  bases_.prepare();
}

std::string Vocab::to_image(std::string_view key) {
  image::Writer out(key);
  trie_.save(out);
  bases_.save(out);
  return out.finish();
}

void Vocab::look_at_bytes() {
  for (unsigned b = 0; b < 256; ++b) {
    const TrieNode c = trie_.child(TokenTrie::kRoot, static_cast<uint8_t>(b));
    single_[b] = c != kNoNode && trie_.has_tokens(c);
  }
  const auto all = [&](unsigned lo, unsigned hi) { return std::all_of(single_ + lo, single_ + hi + 1, [](bool x) { return x; }); };
  byte_complete_ = true;
  for (unsigned b = 0; b < 256; ++b) byte_complete_ = byte_complete_ && (single_[b] || !occurs_in_utf8(b));
  printable_ascii_ = all(0x20, 0x7e);
  // Without any byte beyond ASCII (a character model of plain text) continuation bytes are not missed.
  const bool ascii_only = std::none_of(single_ + 0x80, single_ + 256, [](bool x) { return x; });
  character_closed_ = ascii_only || all(0x80, 0xbf);
  for (TrieNode n = 1; n < trie_.size() && character_closed_; ++n) character_closed_ = single_[trie_.byte(n)];
  if (!character_closed_) return;
  for (uint32_t b = 0; b < 0x80; ++b)
    if (!single_[b]) lacking_.emplace_back(b, b);
  for (uint32_t b = 0xc2; b <= 0xf4; ++b) {
    if (single_[b]) continue;
    if (b < 0xe0) lacking_.emplace_back((b & 0x1f) << 6, ((b & 0x1f) << 6) | 0x3f);
    else if (b < 0xf0) lacking_.emplace_back(std::max((b & 0x0f) << 12, 0x800u), ((b & 0x0f) << 12) | 0xfff);
    else lacking_.emplace_back(std::max((b & 0x07) << 18, 0x10000u), std::min(((b & 0x07) << 18) | 0x3ffff, 0x10ffffu));
  }
}

bool Vocab::can_spell(std::string_view text) const {
  return std::all_of(text.begin(), text.end(), [&](char c) { return single_[static_cast<uint8_t>(c)]; });
}

bool Vocab::is_eos(TokenId t) const { return std::binary_search(eos_.begin(), eos_.end(), t); }

const TokenTrie& Vocab::irreducible() const {
  const auto spelled_by_others = [&](std::string_view bytes) {
    std::vector<uint8_t> reach(bytes.size() + 1, 0);
    reach[0] = 1;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!reach[i]) continue;
      TrieNode n = TokenTrie::kRoot;
      for (size_t j = i; j < bytes.size(); ++j) {
        n = trie_.child(n, static_cast<uint8_t>(bytes[j]));
        if (n == kNoNode) break;
        if (trie_.has_tokens(n) && j + 1 - i < bytes.size()) reach[j + 1] = 1;
      }
    }
    return reach[bytes.size()] != 0;
  };
  std::call_once(irreducible_once_, [&] {
    std::vector<std::string_view> views;
    std::vector<TokenId> ids;
    for (TokenId t = 0; t < size(); ++t)
      if (is_text(t) && !spelled_by_others(bytes(t))) {
        views.push_back(bytes(t));
        ids.push_back(t);
      }
    irreducible_.build(views, ids);
  });
  return irreducible_;
}

std::vector<uint32_t> Vocab::spelling_costs(std::string_view text) const {
  std::vector<uint32_t> costs(text.size() + 1, kNoCost);
  costs[text.size()] = 0;
  for (size_t i = text.size(); i-- > 0;) {
    TrieNode n = TokenTrie::kRoot;
    for (size_t j = i; j < text.size(); ++j) {
      n = trie_.child(n, static_cast<uint8_t>(text[j]));
      if (n == kNoNode) break;
      if (trie_.has_tokens(n)) costs[i] = std::min(costs[i], add_cost(1, costs[j + 1]));
    }
  }
  return costs;
}

}  // namespace mw

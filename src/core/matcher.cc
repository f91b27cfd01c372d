#include "matcher.h"

#include <algorithm>

#include "spelling.h"
#include "uniqueness.h"

namespace mw {

Matcher::Verdict Matcher::prepare() {
  if (step().config != Request::kNoConfig) return Verdict::Yes;
  Request& r = request();
  r.needs().clear();
  const ConfigId root = r.root();
  if (r.lacks_nodes() || !r.program().settle_spelling(r.needs())) return Verdict::Needs;
  session_->steps[at_].config = root;
  session_->steps[at_].recording = r.uniqueness() ? Recorder::kStart : 0;
  return Verdict::Yes;
}

void Matcher::push(ConfigId config, uint32_t recording, bool finished) {
  const auto id = static_cast<uint32_t>(session_->steps.size());
  session_->steps.push_back({at_, config, step().depth + 1, finished, recording});
  at_ = id;
}

bool Matcher::is_accepting() const {
  return !step().finished && step().config != Request::kNoConfig && request().config(config()).accepting;
}

Matcher::Verdict Matcher::accept(TokenId token) {
  if (prepare() == Verdict::Needs) return Verdict::Needs;
  Request& r = request();
  const Vocab& vocab = r.vocab();
  if (vocab.is_eos(token)) {
    if (!step().finished && !r.config(config()).accepting) return Verdict::No;
    push(config(), step().recording, true);
    return Verdict::Yes;
  }
  if (step().finished || !vocab.is_text(token)) return Verdict::No;
  return accept_bytes(vocab.bytes(token));
}

Matcher::Verdict Matcher::advance(std::string_view bytes, ConfigId& config_, uint32_t& recording) {
  Request& r = request();
  r.needs().clear();
  if (Uniqueness* unique = r.uniqueness()) {
    const Position to = unique->advance({config(), step().recording}, bytes);
    config_ = to.config;
    recording = to.recording;
  } else {
    config_ = r.advance(config(), bytes);
  }
  r.take_doubt();
  if (r.lacks_nodes()) return Verdict::Needs;
  return config_ == Request::kNoConfig ? Verdict::No : Verdict::Yes;
}

Matcher::Verdict Matcher::accept_bytes(std::string_view bytes) {
  if (prepare() == Verdict::Needs) return Verdict::Needs;
  if (step().finished) return bytes.empty() ? Verdict::Yes : Verdict::No;
  Request& r = request();
  ConfigId next = Request::kNoConfig;
  uint32_t recording = 0;
  const Verdict verdict = advance(bytes, next, recording);
  if (verdict != Verdict::Yes) return verdict;
  if (!r.program().spells_freely()) {
    const bool lives = can_be_spelled(r, next);
    if (r.lacks_nodes()) return Verdict::Needs;
    if (!lives) return Verdict::No;
  }
  push(next, recording, false);
  return Verdict::Yes;
}

void Matcher::rollback(uint32_t n) {
  for (; n > 0; --n) at_ = step().parent;
}

void Matcher::reset() {
  // A request of our own: its records and memo would otherwise only grow. The program's shared memo stays.
  session_ = std::make_shared<Session>(session_->request.shared_program());
  at_ = 0;
}

void Matcher::write_eos(std::span<uint32_t> row) const {
  for (TokenId t : request().vocab().eos()) set_bit(row.data(), t);
}

// The mask of the current configuration: from the memo, or walked. With a limit the walk also learns the dearest of its
// tokens' closing costs; where none is too dear, it is the plain mask and serves all larger limits.
Matcher::Verdict Matcher::record(MaskRecord const*& out, uint32_t limit, MaskRecord& scratch) {
  Request& r = request();
  const ConfigId id = config();
  const bool costs = limit < kNoCost;
  const MaskRecord* known = r.known_mask(id);
  if (known != nullptr && (!costs || known->max_cost <= limit)) {
    Counters::add(r.program().counters().memo_hits, 1);
    out = known;
    return Verdict::Yes;
  }
  const auto walk = [&] {
    r.needs().clear();
    if (costs && !r.program().settle_costs(0, r.needs(), r.cost_unit())) return Verdict::Needs;
    auto made = std::make_unique<MaskRecord>();
    Walker walker(r, *made, costs, costs ? limit : kNoCost);
    walker.run(id);
    if (r.lacks_nodes()) return Verdict::Needs;
    if (walker.dropped()) {
      scratch = std::move(*made);
      out = &scratch;
      return Verdict::No;
    }
    out = &r.keep_mask(id, std::move(made));
    return Verdict::Yes;
  };
  // Far from the budget bytes are few enough, and how few tokens would do need not be known. (Items that must differ have
  // costs of their own.)
  if (costs && !r.uniqueness()) {
    r.count_costs_in(CostUnit::Bytes);
    const Verdict verdict = walk();
    r.count_costs_in(CostUnit::Tokens);
    if (verdict != Verdict::No) return verdict;
  }
  return walk() == Verdict::Needs ? Verdict::Needs : Verdict::Yes;
}

Matcher::Verdict Matcher::write(const MaskRecord& record, uint32_t limit, std::span<uint32_t> row) {
  record.write(row);
  Uniqueness* unique = request().uniqueness();
  if (!unique) return Verdict::Yes;
  const Position at{config(), step().recording};
  request().needs().clear();
  Uniqueness::Repair within;
  const Uniqueness::Repair* repair = &within;
  if (limit < kNoCost) within = unique->repair_within(at, record, limit);
  else repair = unique->repair(at, record);
  if (request().lacks_nodes()) return Verdict::Needs;
  for (TokenId t : repair->add) set_bit(row.data(), t);
  for (TokenId t : repair->remove) clear_bit(row.data(), t);
  return Verdict::Yes;
}

bool Matcher::knows_mask() const {
  if (config() == Request::kNoConfig || request().known_mask(config()) == nullptr) return false;
  Uniqueness* unique = request().uniqueness();
  return !unique || unique->knows_repair({config(), step().recording});
}

Matcher::Verdict Matcher::fill(std::span<uint32_t> row, uint32_t max_tokens, bool memo_only) {
  const size_t words = words_for(request().vocab().size());
  const auto mine = row.first(words);
  const auto blank = [&](std::span<uint32_t> w) { std::fill(w.begin(), w.end(), 0u); };
  blank(row.subspan(words));
  if (step().finished) {
    blank(mine);
    write_eos(mine);
    return Verdict::Yes;
  }
  if (memo_only && !knows_mask()) return Verdict::No;
  if (prepare() == Verdict::Needs) return Verdict::Needs;
  MaskRecord scratch;
  const MaskRecord* record_ = nullptr;
  uint32_t limit = kNoCost;
  if (max_tokens != kNoBudget) limit = max_tokens < 2 ? 0 : std::min(max_tokens - 2, kNoCost - 1);
  if (max_tokens < 2) {  // nothing but EOS fits
    blank(mine);
  } else if (!request().program().spells_freely() && max_tokens != kNoBudget) {
    return fill_by_search(mine, max_tokens);
  } else {
    if (record(record_, limit, scratch) == Verdict::Needs) return Verdict::Needs;
    if (write(*record_, limit, mine) == Verdict::Needs) return Verdict::Needs;
  }
  if (max_tokens > 0 && request().config(config()).accepting) write_eos(mine);
  return Verdict::Yes;
}

Matcher::Verdict Matcher::cost(uint32_t& tokens) {
  if (prepare() == Verdict::Needs) return Verdict::Needs;
  Request& r = request();
  tokens = 0;
  if (step().finished || r.config(config()).accepting) return Verdict::Yes;
  r.needs().clear();
  if (!r.program().spells_freely()) {
    tokens = spelling_cost(r, config());
    return r.lacks_nodes() ? Verdict::Needs : Verdict::Yes;
  }
  if (!r.program().settle_costs(0, r.needs(), CostUnit::Tokens)) return Verdict::Needs;
  tokens = r.uniqueness() ? r.uniqueness()->cost({config(), step().recording}) : r.config_cost(config());
  return r.lacks_nodes() ? Verdict::Needs : Verdict::Yes;
}

Matcher::Verdict Matcher::fits(bool& within, uint32_t max_tokens) {
  if (prepare() == Verdict::Needs) return Verdict::Needs;
  Request& r = request();
  if (!step().finished && r.program().spells_freely() && !r.uniqueness()) {
    r.needs().clear();
    r.count_costs_in(CostUnit::Bytes);
    within = r.program().settle_costs(0, r.needs(), CostUnit::Bytes) && r.config_cost(config()) <= max_tokens;
    r.count_costs_in(CostUnit::Tokens);
    if (r.lacks_nodes()) return Verdict::Needs;
    if (within) return Verdict::Yes;
  }
  uint32_t tokens = 0;
  const Verdict verdict = cost(tokens);
  within = tokens <= max_tokens;
  return verdict;
}

Matcher::Verdict Matcher::allowed_in(ConfigId id, std::vector<TokenId>& out) {
  Request& r = request();
  MaskRecord mask;
  Walker walker(r, mask, false, kNoCost);
  walker.run(id);
  out = mask.plain.add;
  return r.lacks_nodes() ? Verdict::Needs : Verdict::Yes;
}

// Vocabularies that lack single bytes: each token's end has a cost of its own.
Matcher::Verdict Matcher::fill_by_search(std::span<uint32_t> row, uint32_t max_tokens) {
  Request& r = request();
  r.needs().clear();
  std::fill(row.begin(), row.end(), 0u);
  std::vector<TokenId> allowed;
  if (allowed_in(config(), allowed) == Verdict::Needs) return Verdict::Needs;
  std::unordered_map<ConfigId, uint32_t> known;
  for (TokenId t : allowed) {
    const ConfigId to = r.advance(config(), r.vocab().bytes(t));
    r.take_doubt();
    if (r.lacks_nodes()) return Verdict::Needs;
    const auto [it, fresh] = known.try_emplace(to, kNoCost);
    if (fresh) it->second = spelling_cost(r, to);
    if (r.lacks_nodes()) return Verdict::Needs;
    if (it->second <= max_tokens - 2) set_bit(row.data(), t);
  }
  if (r.config(config()).accepting) write_eos(row);
  return Verdict::Yes;
}

}  // namespace mw

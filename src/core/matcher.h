// A matcher: one position in one request. Forks share the request's memo and its lock.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "mask.h"
#include "request.h"

namespace mw {

// What forks share. History is a tree of steps; a matcher is a leaf.
struct Session {
  explicit Session(std::shared_ptr<Program> program) : owned(Request::for_matchers(std::move(program))), request(*owned) {
    steps.push_back({0, Request::kNoConfig, 0, false, 0});
  }
  ~Session() { Request::let_go(std::move(owned)); }
  struct Step {
    uint32_t parent;
    ConfigId config;
    uint32_t depth;
    bool finished;
    uint32_t recording;  // uniqueness.h; 0: nothing is recorded
  };
  std::mutex mutex;
  std::unique_ptr<Request> owned;
  Request& request;
  std::vector<Step> steps;  // steps[0]: nothing read; its configuration is found on first use
};

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<Program> program) : session_(std::make_shared<Session>(std::move(program))) {}

  // Everything below except the trivial getters may stop short because a node is not defined yet: then request().needs()
  // is not empty, nothing has changed, and the caller defines them and calls again.
  enum class Verdict : uint8_t { No, Yes, Needs };

  Verdict prepare();  // finds the first configuration
  Verdict accept(TokenId token);
  Verdict accept_bytes(std::string_view bytes);
  // Yes: the row is written. memo_only: do nothing (No) where the mask is not known yet.
  Verdict fill(std::span<uint32_t> row, uint32_t max_tokens, bool memo_only);
  static constexpr uint32_t kNoBudget = 0xffffffffu;
  Verdict cost(uint32_t& tokens);  // fewest tokens to the end, without EOS
  Verdict fits(bool& within, uint32_t max_tokens);  // whether those are at most so many; needs no search where they are far fewer
  void rollback(uint32_t n);
  Matcher fork() const { return *this; }
  void reset();

  bool is_accepting() const;
  bool is_finished() const { return step().finished; }
  uint32_t num_tokens() const { return step().depth; }
  Session& session() const { return *session_; }
  std::shared_ptr<Session> shared_session() const { return session_; }
  Request& request() const { return session_->request; }
  ConfigId config() const { return step().config; }

 private:
  const Session::Step& step() const { return session_->steps[at_]; }
  Verdict advance(std::string_view bytes, ConfigId& config, uint32_t& recording);
  void push(ConfigId config, uint32_t recording, bool finished);
  Verdict record(MaskRecord const*& out, uint32_t limit, MaskRecord& scratch);
  void write_eos(std::span<uint32_t> row) const;
  Verdict allowed_in(ConfigId id, std::vector<TokenId>& out);
  Verdict write(const MaskRecord& record, uint32_t limit, std::span<uint32_t> row);
  bool knows_mask() const;
  Verdict fill_by_search(std::span<uint32_t> row, uint32_t max_tokens);

  std::shared_ptr<Session> session_;
  uint32_t at_ = 0;
};

}  // namespace mw

// Requests whose matchers are gone: the next one under the same constraint goes on with what they know, masks above all.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace mw {

class Request;

class RequestPool {
 public:
  RequestPool();
  ~RequestPool();
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;

  std::unique_ptr<Request> take();  // nullptr where there is none
  // Keeps it, unless it or all that lie idle in the process take too much.
  void give(std::unique_ptr<Request> request);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> idle_;
};

}  // namespace mw

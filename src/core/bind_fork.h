// Locks and fork(), for bind.cpp.
//
// A forked child has the forking thread alone. A lock of the core that another thread held would stay locked there for
// ever, over data that was being changed. So threads have a pass while they may let go of the GIL with such a lock held, and
// os.fork() waits until the others have given theirs back (threads may fork at any time: data loaders, subprocess).
// The counts are kept under the GIL; waiting is by polling, since a lock here would have to survive the fork itself.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "batch.h"

namespace mw {

class ForkGate {
 public:
  // For the time of one call; taken and given back with the GIL held. Passes of one thread nest.
  class Pass {
   public:
    Pass() {
      while (forking_ > 0 && mine_ == 0) nap();
      ++mine_;
      ++inside_;
    }
    ~Pass() {
      --mine_;
      --inside_;
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
  };

  static void before() {
    ++forking_;
    while (inside_ > mine_) nap();
  }
  static void after_in_parent() { --forking_; }
  static void after_in_child() {
    forking_ = 0;
    inside_ = mine_;
    forget_pool();
  }

  // Makes Python's fork() obey; where there is none, nothing is to be done.
  static void install() {
    const nanobind::object os = nanobind::module_::import_("os");
    if (!nanobind::hasattr(os, "register_at_fork")) return;
    nanobind::dict hooks;
    hooks["before"] = nanobind::cpp_function(&before);
    hooks["after_in_parent"] = nanobind::cpp_function(&after_in_parent);
    hooks["after_in_child"] = nanobind::cpp_function(&after_in_child);
    os.attr("register_at_fork")(**hooks);
  }

 private:
  static void nap() {
    nanobind::gil_scoped_release release;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  static inline int inside_ = 0;   // passes out
  static inline int forking_ = 0;  // threads between `before` and the end of their fork
  static inline thread_local int mine_ = 0;
};

// Locks a mutex without holding the GIL while waiting. The caller has a pass.
template <class Mutex>
std::unique_lock<Mutex> lock_politely(Mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    nanobind::gil_scoped_release release;
    lock.lock();
  }
  return lock;
}

}  // namespace mw

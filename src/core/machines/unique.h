// What arrays have in common whose items must differ (uniqueItems).
//
// Their machines read what was written from the request's recording. In walks over the vocabulary, which record nothing,
// the item that is being written is taken to end well; where it does not is found out afterwards (uniqueness.h). From the
// comma behind it on, the state is marked: what follows depends on that item, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../recorder.h"
#include "machine.h"

namespace mw {

class UniqueItems {
 public:
  // positions: for those that have to be filled and have few values, the texts of these; empty for all others.
  // texts: values such that each item that has to come, and has not few values, can be one of them: for closing costs.
  UniqueItems(std::vector<std::vector<std::string>> positions, std::vector<std::string> texts);

  // Whether the item that has just been written may stand where it does.
  bool admits(Request& r) const;
  // The values that the next item of an array, in which some are finished, may not have: those that came, and those
  // that a later position cannot do without.
  void forbidden(Request& r, uint32_t list, std::vector<ValueId>& out) const;
  const std::vector<std::string>& texts(uint64_t position) const {
    return position < positions_.size() && !positions_[position].empty() ? positions_[position] : texts_;
  }
  // No such item takes more tokens.
  uint32_t dearest() const { return dearest_; }
  bool starves() const { return starves_; }  // some values are kept for later positions

 private:
  // Where each later position can have a value of its own, the ones without which some cannot.
  const std::vector<ValueId>& kept(Request& r, uint32_t list) const;
  std::vector<ValueId> find_kept(Request& r, uint32_t list) const;

  std::vector<std::vector<std::string>> positions_;
  std::vector<std::string> texts_;
  bool starves_;
  uint32_t dearest_ = 0;
};

// Whether infinitely many values can follow from the start of a node: certain if true.
bool node_is_endless(Request& r, NodeId node);

}  // namespace mw

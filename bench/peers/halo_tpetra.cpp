// SPDX-License-Identifier: BSD-3-Clause
#include "halo_tpetra.hpp"

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <Teuchos_DefaultMpiComm.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Distributor.hpp>
#include <stdexcept>

namespace headway::peers {
namespace {

/// Tpetra starts with the first distributor and ends before MPI does.
Teuchos::RCP<const Teuchos::Comm<int>> start_tpetra() {
  if (!Tpetra::isInitialized()) {
    int count = 0;
    char** words = nullptr;
    Tpetra::initialize(&count, &words);
  }
  return Tpetra::getDefaultComm();
}

}  // namespace

struct PackedDistributor::State {
  using Memory = Kokkos::View<char*, Kokkos::HostSpace>;
  std::size_t element_bytes;
  Tpetra::Distributor distributor{start_tpetra()};
  Memory sent = {}, received = {};
};

PackedDistributor::PackedDistributor(const std::vector<int>& ranks, const std::vector<std::size_t>& counts,
                                     std::size_t received, std::size_t element_bytes)
    : state_(new State{element_bytes}) {
  std::vector<int> rank_of_element;
  for (std::size_t i = 0; i < ranks.size(); ++i) rank_of_element.insert(rank_of_element.end(), counts[i], ranks[i]);
  const std::size_t arrives = state_->distributor.createFromSends(
      Teuchos::ArrayView<const int>(rank_of_element.data(), Teuchos::Ordinal(rank_of_element.size())));
  if (arrives != received)
    throw std::runtime_error(fmt::format("Tpetra would deliver {} elements, expected {}", arrives, received));
  state_->sent = State::Memory("sent", rank_of_element.size() * element_bytes);
  state_->received = State::Memory("received", received * element_bytes);
}

PackedDistributor::~PackedDistributor() = default;

void* PackedDistributor::sent() { return state_->sent.data(); }
const void* PackedDistributor::received() const { return state_->received.data(); }

void PackedDistributor::exchange() {
  state_->distributor.doPostsAndWaits(State::Memory::const_type(state_->sent), state_->element_bytes, state_->received);
}

}  // namespace headway::peers

// SPDX-License-Identifier: BSD-3-Clause
/// Works around MPICH 4.0 over TCP. Its MPI_Finalize closes its UCX endpoints and then waits in a barrier of the
/// launcher, where it answers no other rank; a rank that waits for such an answer never returns (MPICH's pull request
/// 6596). This function replaces UCX's: the endpoints stay until the worker is destroyed, after that barrier. The
/// plug-in's symbols are in the global scope, so this one precedes UCX's if the plug-in has loaded MPICH; other
/// programs preload the plug-in.
extern "C" [[gnu::visibility("default")]] void* ucp_disconnect_nb(void* /*endpoint*/) {
  return nullptr;  // UCS_OK, at once
}

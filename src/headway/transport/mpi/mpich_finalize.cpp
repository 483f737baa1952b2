/// For programs of MPICH 4.0 over TCP. In MPI_Finalize it closes its UCX endpoints, then waits in a barrier of the launcher, where
/// it answers nobody: a rank whose closing is not answered by then waits for ever (MPICH's pull request 6596). This leaves the
/// endpoints to the destruction of the worker, after that barrier. In the plug-in, which all see, it comes before UCX's own
/// where that plug-in has brought MPICH into the process; others preload it.
extern "C" [[gnu::visibility("default")]] void* ucp_disconnect_nb(void* /*endpoint*/) {
  return nullptr;  // UCS_OK, at once
}

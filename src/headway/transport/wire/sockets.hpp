/// TCP as the processes of a run use it beside the wire: to meet, and to notice that one is lost. Never on the data
/// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace headway::wire {

/// Writes or reads all of it, waiting as long as that takes; false where the connection has ended.
bool write_all(int socket, const void* data, std::size_t bytes);
bool read_all(int socket, void* data, std::size_t bytes);

/// So that the systems at both ends notice within about three seconds that nothing gets through any more, however busy,
/// slow or stopped the processes are.
void notice_loss(int socket);

/// A socket connected to the first address of the host that answers within 4 s; -1: none does.
int connect_to(const std::string& host, std::uint16_t port);

/// A socket that listens on a port of the system's choice: of this host alone, or (`open`) of all its addresses. Throws
/// SystemError.
int listen_anywhere(bool open, int backlog);
std::uint16_t port_of(int listener);

/// A secret for one run.
std::uint64_t make_token();

}  // namespace headway::wire

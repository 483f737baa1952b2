// SPDX-License-Identifier: BSD-3-Clause
/// TCP between the processes of a run, for meetings and lifelines. Never on the data path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace headway::wire {

/// Writes or reads all `bytes`. Waits without limit. False if the connection has ended.
bool write_all(int socket, const void* data, std::size_t bytes);
bool read_all(int socket, void* data, std::size_t bytes);

/// Makes the systems at both ends end the connection when the network has been interrupted for about three seconds,
/// however busy, slow or stopped the processes are.
void notice_loss(int socket);

/// A socket connected to the first address of `host` that answers within 4 s; -1: none does.
int connect_to(const std::string& host, std::uint16_t port);

/// A socket that listens on a free port, on the loopback address or (`open`) on all addresses of the host. Throws
/// SystemError.
int listen_anywhere(bool open, int backlog);
std::uint16_t port_of(int listener);

/// A secret for one run.
std::uint64_t make_token();

}  // namespace headway::wire

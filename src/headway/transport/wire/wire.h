/* SPDX-License-Identifier: BSD-3-Clause */
/* A plug-in moves bytes between processes. It provides a struct of C functions. The runtime loads plug-ins at run time,
 * so that programs need no MPI and no UCX to be built or started. No exceptions and no C++ types cross this interface.
 *
 * States of a wire and the calls that each state permits:
 *
 *     (nothing) --start--> started --[send, receive, progress, exchange]*--> settling --leave--> (nothing)
 *                          [expose, reach, get,                         settle, receive, progress,
 *                           withdraw, forget]*                          withdraw, forget
 *
 * start, exchange, settle and leave are collective: every process makes the same calls in the same order. One thread at
 * a time calls; only the thread that called start, unless headway_wire_facts::any_thread is set. Calls return 0, or the
 * value that their comment states; a negative value is a failure, and headway_wire_functions::failure gives its reason.
 */
#ifndef HEADWAY_TRANSPORT_WIRE_WIRE_H
#define HEADWAY_TRANSPORT_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when the meaning of this file changes. Functions that are added at the end only raise `bytes`. */
#define HEADWAY_WIRE_VERSION 2

/* The one symbol of a plug-in: a function of type headway_wire_entry. */
#define HEADWAY_WIRE_ENTRY "headway_wire_plugin"

/* Memory of messages on headway_wire_large starts at a multiple of this. The plug-in may read it, and on the receiver
 * also write it, up to the next multiple. */
#define HEADWAY_WIRE_LARGE_UNIT 64

typedef struct headway_wire headway_wire;               /* the plug-in defines these three */
typedef struct headway_wire_region headway_wire_region; /* memory of this process that other processes read */
typedef struct headway_wire_remote headway_wire_remote; /* a region of another process, as this one reaches it */

typedef struct headway_wire_facts {
  uint32_t processes;
  uint32_t process;    /* number of this process */
  uint32_t any_thread; /* 1: any thread may call, one at a time; 0: only the thread that called start */
  uint32_t was_there;  /* 1: the user's program had initialised the library (MPI, UCX) before start */
  const char* library; /* the library's name and version */
} headway_wire_facts;

/* Two channels for messages from one process to another. They do not wait for each other. */
enum {
  headway_wire_frames = 0, /* the oldest receive takes the message, from any sender */
  headway_wire_large = 1   /* the oldest receive for that sender takes the message */
};

enum {
  headway_wire_sent = 0, /* the message's memory may be used again */
  headway_wire_arrived = 1,
  headway_wire_got = 2 /* the bytes of a get have arrived */
};

typedef struct headway_wire_event {
  uint32_t kind;
  uint32_t process; /* arrived: the sender */
  uint32_t channel; /* arrived */
  uint32_t reserved;
  uint64_t cookie; /* of the send, receive or get */
  uint64_t bytes;  /* arrived: length of the message; on headway_wire_large the length of the receive */
} headway_wire_event;

/* Connects the processes of a run before the wire does. */
typedef struct headway_wire_meeting {
  uint32_t processes;
  uint32_t process; /* number of this process */
  void* context;
  int (*exchange)(void* context, const void* mine, size_t bytes, void* all); /* as headway_wire_functions::exchange */
  void (*abort)(void* context, int status);                                  /* as headway_wire_functions::abort */
} headway_wire_meeting;

typedef struct headway_wire_functions {
  uint32_t version; /* HEADWAY_WIRE_VERSION of the plug-in */
  uint32_t bytes;   /* sizeof(headway_wire_functions) of the plug-in */
  const char* name; /* "openmpi" */

  uint32_t needs_meeting; /* 1: start gets a meeting, which lasts until leave; 0: the library connects the processes */

  /* Starts the library, or joins the library that the user's program has started; messages stay apart from the user's.
   * On failure writes a line to `reason`. May be called again after leave. */
  int (*start)(const headway_wire_meeting* meeting, headway_wire** wire, headway_wire_facts* facts, char* reason,
               size_t reason_bytes);

  /* Gathers `bytes` bytes of every process in `all`, ordered by process number. Waits for the other processes, and
   * yields the processor meanwhile. */
  int (*exchange)(headway_wire* wire, const void* mine, size_t bytes, void* all);

  /* Sends a message. Its memory must not change until headway_wire_sent. Returns 1 if it has been sent already; there
   * is no event then. Never waits. Messages from one process to another on one channel arrive in the order of these
   * calls. */
  int (*send)(headway_wire* wire, uint32_t target, uint32_t channel, const void* message, size_t bytes,
              uint64_t cookie);

  /* Gives memory for one message: on headway_wire_frames of at most `bytes` from any process, on headway_wire_large of
   * exactly `bytes` from `source`. */
  int (*receive)(headway_wire* wire, uint32_t channel, uint32_t source, void* memory, size_t bytes, uint64_t cookie);

  /* Moves messages without waiting, and writes up to `events_max` events; returns their number. It reports messages of
   * one process on headway_wire_frames in their order. It may leave events for the next call, but returns 0 only if
   * there was none. */
  int (*progress)(headway_wire* wire, headway_wire_event* events, int events_max);

  /* Called after this process's last send, until it returns 1 instead of 0. Then `arriving` is the number of messages
   * that the other processes have sent to this one since start, on both channels together. */
  int (*settle)(headway_wire* wire, uint64_t* arriving);

  /* Takes back receives without a message. If start has started the library, it ends at the end of the program. */
  int (*leave)(headway_wire* wire);

  /* Ends all processes with that status. May return before they have ended. From any thread, at any time. */
  void (*abort)(headway_wire* wire, int status);

  /* Reason of the last failure. */
  const char* (*failure)(headway_wire* wire);

  /* The process that was lost with that failure; the number of processes if it is not known, or if none was lost. */
  uint32_t (*lost)(headway_wire* wire);

  /* Waits until progress may find something, at most `ns_max`; returns 1. Returns 0 at once if it cannot wait for all
   * kinds of events. NULL: it never can; then a waiting caller polls progress. */
  int (*wait)(headway_wire* wire, uint64_t ns_max);

  /* The next five give other processes access to memory of one process. All are NULL if the wire has no remote memory.
   * The owner must call progress: without a network device that reads memory, progress moves the bytes. A failure of
   * expose, withdraw, reach and forget, and of a get beyond the region, changes nothing, and the wire goes on. Any
   * other failure ends the wire; a get that fails later makes progress fail. */

  /* Exposes `bytes` bytes (0 is allowed) at `memory`, which must stay valid until withdraw. Writes a key for the other
   * processes, which messages can carry, to `key`, and its length to `key_bytes`. If `key_room` is less than that, it
   * fails and still sets `key_bytes`. Not collective. Slow: the system may have to pin the memory. */
  int (*expose)(headway_wire* wire, void* memory, size_t bytes, headway_wire_region** region, void* key,
                size_t key_room, size_t* key_bytes);

  /* Ends expose, when no process will use the key again. Before leave. */
  int (*withdraw)(headway_wire* wire, headway_wire_region* region);

  /* Prepares access to a region of `process`, which may be this one. Refuses damaged keys and keys of other processes.
   * The caller knows that the region is still exposed. */
  int (*reach)(headway_wire* wire, uint32_t process, const void* key, size_t key_bytes, headway_wire_remote** remote);

  /* Ends reach, when all gets from the region are complete. Before leave. */
  int (*forget)(headway_wire* wire, headway_wire_remote* remote);

  /* Reads `bytes` bytes of the region from its byte `offset` on to `to`, which belongs to the wire until
   * headway_wire_got. Returns 1 if they have arrived already; there is no event then. Never waits. Gets are in no order
   * with each other, nor with messages. */
  int (*get)(headway_wire* wire, headway_wire_remote* remote, uint64_t offset, void* to, size_t bytes, uint64_t cookie);

  /* Longer messages on headway_wire_frames wait for their receiver's answer, so that they move only while both sides
   * call progress. 0: no message waits, or the length is not known. After start. NULL: as 0. */
  uint64_t (*eager_bytes)(headway_wire* wire);
} headway_wire_functions;

typedef const headway_wire_functions* (*headway_wire_entry)(void);

#ifdef __cplusplus
}
#endif

#endif

/* What a plug-in that moves bytes between processes provides: a struct of C functions. Plug-ins are loaded at run time, so
 * that programs need no MPI, UCX or the like to be built or started. No exceptions and no C++ types cross it.
 *
 * States of a wire, and who may call what:
 *
 *     (nothing) --start--> started --[send, receive, progress, exchange]*--> settling --leave--> (nothing)
 *                          [expose, reach, put, get, flush,             settle, receive, progress,
 *                           withdraw, forget]*                          withdraw, forget
 *
 * start, exchange, settle and leave are collective: every process makes the same calls in the same order. Calls are made
 * by one thread at a time; by the one that called start alone unless headway_wire_facts::any_thread is set. Calls return 0,
 * or what their comment says; a negative number is a failure, whose reason headway_wire_functions::failure names. */
#ifndef HEADWAY_TRANSPORT_WIRE_WIRE_H
#define HEADWAY_TRANSPORT_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when what is here changes its meaning; functions that are added at the end only raise `bytes`. */
#define HEADWAY_WIRE_VERSION 1

/* The one symbol of a plug-in: a function of type headway_wire_entry. */
#define HEADWAY_WIRE_ENTRY "headway_wire_plugin"

/* Memory of messages on headway_wire_large starts at a multiple of this, and may be read and, on the receiving side,
 * written up to a multiple of it. */
#define HEADWAY_WIRE_LARGE_UNIT 64

typedef struct headway_wire headway_wire;               /* the plug-in's own, like these two */
typedef struct headway_wire_region headway_wire_region; /* memory of this process that others write and read */
typedef struct headway_wire_remote headway_wire_remote; /* such memory of a process, as it is reached from here */

typedef struct headway_wire_facts {
  uint32_t processes;
  uint32_t process;       /* this one's number */
  uint32_t any_thread;    /* 1: calls may come from any thread, one at a time; 0: from the one that called start */
  uint32_t was_there;     /* 1: the user's program had initialised the library underneath already */
  const char* library;    /* which one that is, with its version */
} headway_wire_facts;

/* Two ways for messages from one process to another, which do not wait for each other. */
enum {
  headway_wire_frames = 0, /* received by whichever receive is oldest, whoever sent it */
  headway_wire_large = 1   /* received by the oldest receive for that sender */
};

enum {
  headway_wire_sent = 0, /* of a put, too: its source may be used again */
  headway_wire_arrived = 1,
  headway_wire_got = 2,   /* what a get asked for is there */
  headway_wire_placed = 3 /* of a flush */
};

typedef struct headway_wire_event {
  uint32_t kind;
  uint32_t process; /* arrived: who sent it */
  uint32_t channel; /* arrived */
  uint32_t reserved;
  uint64_t cookie; /* of the send, receive, put, get or flush */
  uint64_t bytes;  /* arrived: how long it is; on headway_wire_large what was asked for */
} headway_wire_event;

/* How the processes of a run know of each other before the wire does. */
typedef struct headway_wire_meeting {
  uint32_t processes;
  uint32_t process; /* this one's number */
  void* context;
  int (*exchange)(void* context, const void* mine, size_t bytes, void* all); /* as headway_wire_functions::exchange */
  void (*abort)(void* context, int status);                                  /* as headway_wire_functions::abort */
} headway_wire_meeting;

typedef struct headway_wire_functions {
  uint32_t version; /* HEADWAY_WIRE_VERSION of the plug-in */
  uint32_t bytes;   /* sizeof(headway_wire_functions) of the plug-in */
  const char* name; /* "openmpi" */

  uint32_t needs_meeting; /* 1: start is given one, which lasts until leave; 0: the processes know each other by themselves */

  /* Starts, or takes part in what the user's program has started, with communication apart from the user's. On failure
   * writes a line to `reason`. May be called again after leave. */
  int (*start)(const headway_wire_meeting* meeting, headway_wire** wire, headway_wire_facts* facts, char* reason,
               size_t reason_bytes);

  /* Gathers `bytes` bytes of every process, by number, in `all`. Waits for the others, and lets them have the processor. */
  int (*exchange)(headway_wire* wire, const void* mine, size_t bytes, void* all);

  /* Sends a message, which stays as it is and where it is until it is reported as sent; returns 1 where it is already and
   * will not be. Never waits. Messages from one process to another on one channel arrive in the order of these calls. */
  int (*send)(headway_wire* wire, uint32_t target, uint32_t channel, const void* message, size_t bytes, uint64_t cookie);

  /* Gives memory for one message of at most `bytes`: on headway_wire_frames of anybody, on headway_wire_large of exactly
   * `bytes` of `source`. */
  int (*receive)(headway_wire* wire, uint32_t channel, uint32_t source, void* memory, size_t bytes, uint64_t cookie);

  /* Moves what can be moved, without waiting, and writes up to `events_max` events; returns how many. Messages of one
   * process on headway_wire_frames are reported in their order. There may be more than it found; where it
   * returns 0 there was nothing. */
  int (*progress)(headway_wire* wire, headway_wire_event* events, int events_max);

  /* After this process's last send: call it until it returns 1 instead of 0. Then `arriving` is how many messages the
   * others have sent to this process since start, on both channels together. */
  int (*settle)(headway_wire* wire, uint64_t* arriving);

  /* Takes back receives that nothing has come for. The library underneath is ended at the end of the program, if start
   * has begun it. */
  int (*leave)(headway_wire* wire);

  /* Ends all processes with that status. May return, where ending takes its time. From any thread, at any time. */
  void (*abort)(headway_wire* wire, int status);

  /* Why the last call failed. */
  const char* (*failure)(headway_wire* wire);

  /* The process that was lost then; as many as there are processes: it is not known, or none was. */
  uint32_t (*lost)(headway_wire* wire);

  /* Waits until progress may find something, at most `ns_max`. Returns 0 at once where it cannot wait for all that may come,
   * else 1. NULL: it never can, and whoever waits calls progress ever so often. */
  int (*wait)(headway_wire* wire, uint64_t ns_max);

  /* Memory of one process that others write and read by themselves: all seven are NULL where the wire has no such thing.
   * Its process calls progress all the same, since without a device that reaches into memory this is what moves the bytes.
   * A failure of expose, withdraw, reach and forget, and of a put or get beyond the region, changes nothing, and the wire
   * goes on; any other is the wire's end, and a put, get or flush that fails later makes progress fail. */

  /* Lets the others write and read `bytes` bytes (0: none) at `memory`, which stays where it is until withdraw. Writes a key
   * to `key`, bytes that a message can carry to them, and its length to `key_bytes`. Where `key_room` is less it fails, and
   * `key_bytes` says what the key takes. Local, and slow: the system may have to pin the memory. */
  int (*expose)(headway_wire* wire, void* memory, size_t bytes, headway_wire_region** region, void* key, size_t key_room,
                size_t* key_bytes);

  /* Takes that back, when nobody will use the key again and all that was put is in place. Before leave. */
  int (*withdraw)(headway_wire* wire, headway_wire_region* region);

  /* Makes what `process`, which may be this one, has exposed usable here. Refuses keys that are damaged or another's. That
   * the memory is still exposed is for the caller to know. */
  int (*reach)(headway_wire* wire, uint32_t process, const void* key, size_t key_bytes, headway_wire_remote** remote);

  /* Takes that back, when its puts are in place and its gets are complete. Before leave. */
  int (*forget)(headway_wire* wire, headway_wire_remote* remote);

  /* Writes `bytes` bytes from `from`, which stay as they are and where they are until they are reported as sent, to the
   * memory from its byte `offset` on. Returns 1 where that is so already and will not be reported. Never waits. That they
   * are in place only flush tells. Puts and gets are in no order with each other, nor with messages. */
  int (*put)(headway_wire* wire, headway_wire_remote* remote, uint64_t offset, const void* from, size_t bytes,
             uint64_t cookie);

  /* Reads `bytes` bytes of the memory from its byte `offset` on to `to`, which is the wire's until headway_wire_got. Returns
   * 1 where they are there already and will not be reported. Never waits. */
  int (*get)(headway_wire* wire, headway_wire_remote* remote, uint64_t offset, void* to, size_t bytes, uint64_t cookie);

  /* Asks to be told, by headway_wire_placed, when all puts to `process` before it are in place in its memory. Returns 1 where
   * they are already and it will not be reported. Never waits. */
  int (*flush)(headway_wire* wire, uint32_t process, uint64_t cookie);

  /* Messages on headway_wire_frames that are longer first ask their receiver for room, and get on only where both sides call
   * progress. 0: none do, or it is not known. After start. NULL: as 0. */
  uint64_t (*eager_bytes)(headway_wire* wire);
} headway_wire_functions;

typedef const headway_wire_functions* (*headway_wire_entry)(void);

#ifdef __cplusplus
}
#endif

#endif

-- SPDX-License-Identifier: BSD-3-Clause
-- The list-based queuing lock of Mellor-Crummey and Scott with compare-and-swap, in the steps of ../mcs.hpp.
const
  n: 3;
type
  process: 1..n;
  pointer: 0..n; -- 0: none
  step: enum { idle, enqueue, look_back, lock_self, link, spin, critical, compare, wait_next, unlock_next };
var
  at: array [process] of step;
  is_locked: array [process] of boolean;
  following: array [process] of pointer;
  predecessor: array [process] of pointer;
  tail: pointer;

startstate
begin
  for i: process do
    at[i] := idle;
    is_locked[i] := false;
    following[i] := 0;
    predecessor[i] := 0;
  end;
  tail := 0;
end;

ruleset i: process do
  rule "start" at[i] = idle ==>
  begin
    following[i] := 0;
    at[i] := enqueue;
  end;
  rule "enter the queue" at[i] = enqueue ==>
  begin
    predecessor[i] := tail;
    tail := i;
    at[i] := look_back;
  end;
  rule "look at the predecessor" at[i] = look_back ==>
  begin
    if predecessor[i] = 0 then
      at[i] := critical;
    else
      at[i] := lock_self;
    end;
  end;
  rule "lock itself" at[i] = lock_self ==>
  begin
    is_locked[i] := true;
    at[i] := link;
  end;
  rule "link itself" at[i] = link ==>
  begin
    following[predecessor[i]] := i;
    at[i] := spin;
  end;
  rule "wait" at[i] = spin ==>
  begin
    if !is_locked[i] then
      at[i] := critical;
    end;
  end;
  rule "look for a next" at[i] = critical ==>
  begin
    if following[i] = 0 then
      at[i] := compare;
    else
      at[i] := unlock_next;
    end;
  end;
  rule "free the tail" at[i] = compare ==>
  begin
    if tail = i then
      tail := 0;
      at[i] := idle;
    else
      at[i] := wait_next;
    end;
  end;
  rule "wait for the next" at[i] = wait_next ==>
  begin
    if following[i] != 0 then
      at[i] := unlock_next;
    end;
  end;
  rule "unlock the next" at[i] = unlock_next ==>
  begin
    is_locked[following[i]] := false;
    at[i] := idle;
  end;
end;

invariant "one process is in the critical section"
  forall i: process do forall k: process do i = k | at[i] != critical | at[k] != critical end end;

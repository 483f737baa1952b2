-- SPDX-License-Identifier: BSD-3-Clause
-- Peterson's lock for n processes, in the steps of ../peterson.hpp.
const
  n: 3;
type
  process: 1..n;
  level: 0..n;
  step: enum { idle, announce, give_way, waiting, critical };
var
  at: array [process] of step;
  shown: array [process] of level; -- that others read
  round: array [process] of level;
  turn: array [level] of 0..n;     -- 0: none yet

startstate
begin
  for i: process do
    at[i] := idle;
    shown[i] := 0;
    round[i] := 0;
  end;
  for j: level do
    turn[j] := 0;
  end;
end;

ruleset i: process do
  rule "start" at[i] = idle ==>
  begin
    round[i] := 1;
    at[i] := announce;
  end;
  rule "announce" at[i] = announce ==>
  begin
    shown[i] := round[i];
    at[i] := give_way;
  end;
  rule "give way" at[i] = give_way ==>
  begin
    turn[round[i]] := i;
    at[i] := waiting;
  end;
  rule "wait" at[i] = waiting ==>
  begin
    if turn[round[i]] != i | forall k: process do k = i | shown[k] < round[i] end then
      round[i] := round[i] + 1;
      if round[i] < n then
        at[i] := announce;
      else
        at[i] := critical;
      end;
    end;
  end;
  rule "leave" at[i] = critical ==>
  begin
    shown[i] := 1;
    at[i] := idle;
  end;
end;

invariant "one process is in the critical section"
  forall i: process do forall k: process do i = k | at[i] != critical | at[k] != critical end end;

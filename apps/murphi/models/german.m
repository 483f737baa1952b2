-- SPDX-License-Identifier: BSD-3-Clause
-- German's cache coherence protocol with data, in the rules of ../german.hpp.
const
  n: 3;
type
  node: 1..n;
  data: 0..2; -- 0: none
  mode: enum { invalid, shared, exclusive };
  request: enum { nothing, wants_shared, wants_exclusive };
  reply: enum { silence, invalidate, grant_shared, grant_exclusive };
var
  cache: array [node] of mode;
  content: array [node] of data;
  asks: array [node] of request;
  answer: array [node] of reply;
  answer_data: array [node] of data;
  acknowledges: array [node] of boolean;
  acknowledged_data: array [node] of data;
  to_invalidate: array [node] of boolean;
  is_sharer: array [node] of boolean;
  current: request;
  client: 0..n;
  exclusive_granted: boolean;
  memory: data;
  written: data;

startstate
begin
  for i: node do
    cache[i] := invalid;
    content[i] := 0;
    asks[i] := nothing;
    answer[i] := silence;
    answer_data[i] := 0;
    acknowledges[i] := false;
    acknowledged_data[i] := 0;
    to_invalidate[i] := false;
    is_sharer[i] := false;
  end;
  current := nothing;
  client := 0;
  exclusive_granted := false;
  memory := 1;
  written := 1;
end;

ruleset i: node; d: 1..2 do
  rule "store" cache[i] = exclusive ==>
  begin
    content[i] := d;
    written := d;
  end;
end;

ruleset i: node do
  rule "request shared" asks[i] = nothing & cache[i] = invalid ==>
  begin
    asks[i] := wants_shared;
  end;
  rule "request exclusive" asks[i] = nothing & cache[i] != exclusive ==>
  begin
    asks[i] := wants_exclusive;
  end;
  rule "serve" current = nothing & asks[i] != nothing ==>
  begin
    current := asks[i];
    client := i;
    asks[i] := nothing;
    for k: node do
      to_invalidate[k] := is_sharer[k];
    end;
  end;
  rule "send invalidate"
    answer[i] = silence & to_invalidate[i] & (current = wants_exclusive | current = wants_shared & exclusive_granted)
  ==>
  begin
    answer[i] := invalidate;
    to_invalidate[i] := false;
  end;
  rule "acknowledge" answer[i] = invalidate & !acknowledges[i] ==>
  begin
    answer[i] := silence;
    acknowledges[i] := true;
    if cache[i] = exclusive then
      acknowledged_data[i] := content[i];
    end;
    cache[i] := invalid;
    content[i] := 0;
  end;
  rule "take acknowledgement" acknowledges[i] & current != nothing ==>
  begin
    acknowledges[i] := false;
    is_sharer[i] := false;
    if exclusive_granted then
      exclusive_granted := false;
      memory := acknowledged_data[i];
    end;
    acknowledged_data[i] := 0;
  end;
  rule "send shared" current = wants_shared & client = i & answer[i] = silence & !exclusive_granted ==>
  begin
    answer[i] := grant_shared;
    answer_data[i] := memory;
    is_sharer[i] := true;
    current := nothing;
    client := 0;
  end;
  rule "send exclusive"
    current = wants_exclusive & client = i & answer[i] = silence & !exclusive_granted &
    forall k: node do !is_sharer[k] end
  ==>
  begin
    answer[i] := grant_exclusive;
    answer_data[i] := memory;
    is_sharer[i] := true;
    exclusive_granted := true;
    current := nothing;
    client := 0;
  end;
  rule "take grant" answer[i] = grant_shared | answer[i] = grant_exclusive ==>
  begin
    if answer[i] = grant_shared then
      cache[i] := shared;
    else
      cache[i] := exclusive;
    end;
    content[i] := answer_data[i];
    answer[i] := silence;
    answer_data[i] := 0;
  end;
end;

invariant "an exclusive copy is the only one"
  forall i: node do forall k: node do i = k | cache[i] != exclusive | cache[k] = invalid end end;
invariant "valid copies have the data written last"
  forall i: node do cache[i] = invalid | content[i] = written end;
invariant "memory has the data written last unless a node is exclusive"
  exclusive_granted | memory = written;

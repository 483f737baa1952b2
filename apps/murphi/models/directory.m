-- SPDX-License-Identifier: BSD-3-Clause
-- A directory protocol after DASH, in the rules of ../directory.hpp.
const
  n: 3;
type
  cluster: 1..n;
  pointer: 0..n; -- 0: none
  data: 0..2;    -- 0: none
  mode: enum { invalid, shared, exclusive };
  wait: enum { nothing, read_reply, exclusive_reply, acknowledgements };
  ask: enum { no_request, read, read_exclusive };
  response: enum { no_reply, refused, data_shared, data_exclusive };
  move: enum { no_transfer, sharing_write_back, dirty_transfer };
  keep: enum { uncached, at_sharers, dirty };
var
  cache: array [cluster] of mode;
  content: array [cluster] of data;
  waiting: array [cluster] of wait;
  is_outdated: array [cluster] of boolean;
  needed: array [cluster] of 0..n;
  acknowledged: array [cluster] of 0..n;
  request: array [cluster] of ask;
  written_back: array [cluster] of data;
  transfer: array [cluster] of move;
  transfer_to: array [cluster] of pointer;
  transfer_data: array [cluster] of data;
  forwarded: array [cluster] of ask;
  forwarded_of: array [cluster] of pointer;
  invalidated_by: array [cluster] of pointer;
  reply: array [cluster] of response;
  reply_data: array [cluster] of data;
  reply_needs: array [cluster] of 0..n;
  kept: keep;
  owner: pointer;
  is_sharer: array [cluster] of boolean;
  memory: data;
  written: data;

startstate
begin
  for i: cluster do
    cache[i] := invalid;
    content[i] := 0;
    waiting[i] := nothing;
    is_outdated[i] := false;
    needed[i] := 0;
    acknowledged[i] := 0;
    request[i] := no_request;
    written_back[i] := 0;
    transfer[i] := no_transfer;
    transfer_to[i] := 0;
    transfer_data[i] := 0;
    forwarded[i] := no_request;
    forwarded_of[i] := 0;
    invalidated_by[i] := 0;
    reply[i] := no_reply;
    reply_data[i] := 0;
    reply_needs[i] := 0;
    is_sharer[i] := false;
  end;
  kept := uncached;
  owner := 0;
  memory := 1;
  written := 1;
end;

ruleset i: cluster; d: 1..2 do
  rule "store" cache[i] = exclusive ==>
  begin
    content[i] := d;
    written := d;
  end;
end;

ruleset i: cluster do
  rule "write back" cache[i] = exclusive & written_back[i] = 0 ==>
  begin
    written_back[i] := content[i];
    cache[i] := invalid;
    content[i] := 0;
  end;
  rule "request a copy" cache[i] = invalid & waiting[i] = nothing ==>
  begin
    request[i] := read;
    waiting[i] := read_reply;
  end;
  rule "drop the copy" cache[i] = shared & waiting[i] = nothing ==>
  begin
    cache[i] := invalid;
    content[i] := 0;
  end;
  rule "request an exclusive copy" cache[i] != exclusive & waiting[i] = nothing ==>
  begin
    request[i] := read_exclusive;
    waiting[i] := exclusive_reply;
  end;

  rule "home refuses the owner" request[i] != no_request & kept = dirty & owner = i ==>
  begin
    reply[i] := refused;
    request[i] := no_request;
  end;
  rule "home forwards" request[i] != no_request & kept = dirty & owner != i & forwarded[owner] = no_request ==>
  begin
    forwarded[owner] := request[i];
    forwarded_of[owner] := i;
    request[i] := no_request;
  end;
  rule "home serves a copy" request[i] = read & kept != dirty ==>
  begin
    reply[i] := data_shared;
    reply_data[i] := memory;
    kept := at_sharers;
    is_sharer[i] := true;
    request[i] := no_request;
  end;
  rule "home serves an exclusive copy"
    request[i] = read_exclusive & kept != dirty &
    forall k: cluster do k = i | !is_sharer[k] | invalidated_by[k] = 0 end
  ==>
  begin
    reply[i] := data_exclusive;
    reply_data[i] := memory;
    for k: cluster do
      if k != i & is_sharer[k] then
        invalidated_by[k] := i;
        reply_needs[i] := reply_needs[i] + 1;
      end;
      is_sharer[k] := false;
    end;
    kept := dirty;
    owner := i;
    request[i] := no_request;
  end;
  rule "home takes what was written back" written_back[i] != 0 ==>
  begin
    memory := written_back[i];
    kept := uncached;
    owner := 0;
    written_back[i] := 0;
  end;
  rule "home notes a transfer" transfer[i] != no_transfer ==>
  begin
    if transfer[i] = sharing_write_back then
      kept := at_sharers;
      owner := 0;
      memory := transfer_data[i];
      for k: cluster do
        is_sharer[k] := k = i | k = transfer_to[i];
      end;
    else
      owner := transfer_to[i];
      acknowledged[owner] := acknowledged[owner] + 1;
    end;
    transfer[i] := no_transfer;
    transfer_to[i] := 0;
    transfer_data[i] := 0;
  end;

  rule "refuse for the home" forwarded[i] != no_request & cache[i] != exclusive & reply[forwarded_of[i]] = no_reply ==>
  begin
    reply[forwarded_of[i]] := refused;
    forwarded[i] := no_request;
    forwarded_of[i] := 0;
  end;
  rule "answer for the home"
    forwarded[i] != no_request & cache[i] = exclusive & transfer[i] = no_transfer & reply[forwarded_of[i]] = no_reply
  ==>
  begin
    reply_data[forwarded_of[i]] := content[i];
    transfer_to[i] := forwarded_of[i];
    if forwarded[i] = read then
      reply[forwarded_of[i]] := data_shared;
      transfer[i] := sharing_write_back;
      transfer_data[i] := content[i];
      cache[i] := shared;
    else
      reply[forwarded_of[i]] := data_exclusive;
      reply_needs[forwarded_of[i]] := 1;
      transfer[i] := dirty_transfer;
      cache[i] := invalid;
      content[i] := 0;
    end;
    forwarded[i] := no_request;
    forwarded_of[i] := 0;
  end;
  rule "take an invalidation" invalidated_by[i] != 0 ==>
  begin
    acknowledged[invalidated_by[i]] := acknowledged[invalidated_by[i]] + 1;
    if cache[i] = shared then
      cache[i] := invalid;
      content[i] := 0;
    end;
    if waiting[i] = read_reply then
      is_outdated[i] := true;
    end;
    invalidated_by[i] := 0;
  end;
  rule "take the reply" reply[i] != no_reply ==>
  begin
    waiting[i] := nothing;
    if reply[i] = data_shared & !is_outdated[i] then
      cache[i] := shared;
      content[i] := reply_data[i];
    end;
    if reply[i] = data_exclusive then
      waiting[i] := acknowledgements;
      cache[i] := invalid;
      content[i] := reply_data[i];
      needed[i] := reply_needs[i];
    end;
    is_outdated[i] := false;
    reply[i] := no_reply;
    reply_data[i] := 0;
    reply_needs[i] := 0;
  end;
  rule "all acknowledgements are there" waiting[i] = acknowledgements & acknowledged[i] = needed[i] ==>
  begin
    cache[i] := exclusive;
    waiting[i] := nothing;
    needed[i] := 0;
    acknowledged[i] := 0;
  end;
end;

invariant "an exclusive copy is the only one"
  forall i: cluster do forall k: cluster do i = k | cache[i] != exclusive | cache[k] = invalid end end;
invariant "copies have the data written last"
  forall i: cluster do cache[i] = invalid | content[i] = written end;
invariant "memory has the data written last unless a cluster owns the line"
  kept = dirty | memory = written;
invariant "the owner alone writes back"
  forall i: cluster do written_back[i] = 0 | kept = dirty & owner = i end;

-- The line of each queue. RQ's list is its head, of at most WINDOW jobs and what was put back in front; what is beyond
-- stands in a backlog, from which the list is filled by the callers in turn. All here follows from what the keys hold:
-- RQ's tools may empty or delete the list at any time.
local WINDOW = 64
local LIST, BACKLOG, CALLERS = P .. 'queue:', P .. 'backlog:', P .. 'callers:'

-- A score after every other of a sorted set: the time (microseconds), also when the clock was put back.
local function next_score(key)
  local time = redis.call('TIME')
  local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
  return string.format('%.0f', math.max(time[1] * 1000000 + time[2], last and last + 1 or 0))
end

-- BACKLOG .. queue holds every job of the backlog, and decides; BACKLOG .. queue .. caller holds the caller's, in their
-- order; CALLERS .. queue tells whose turn was longest ago.
local function backlog_of(queue, caller)
  return BACKLOG .. queue .. ':' .. caller
end

local function length(queue)
  return redis.call('LLEN', LIST .. queue) + redis.call('ZCARD', BACKLOG .. queue)
end

local function leave_backlog(id, queue, caller)
  if redis.call('ZREM', BACKLOG .. queue, id) == 1 then
    redis.call('ZREM', backlog_of(queue, caller), id)
    if redis.call('EXISTS', backlog_of(queue, caller)) == 0 then
      redis.call('ZREM', CALLERS .. queue, caller)
    end
  end
end

-- The next job of the backlog, taken out of it; nil when there is none.
local function next_of_backlog(queue)
  while true do
    local caller = redis.call('ZRANGE', CALLERS .. queue, 0, 0)[1]
    if not caller then
      return redis.call('ZPOPMIN', BACKLOG .. queue)[1]
    end
    local id = redis.call('ZPOPMIN', backlog_of(queue, caller))[1]
    if redis.call('EXISTS', backlog_of(queue, caller)) == 1 then
      redis.call('ZADD', CALLERS .. queue, next_score(CALLERS .. queue), caller)
    else
      redis.call('ZREM', CALLERS .. queue, caller)
    end
    if id and redis.call('ZREM', BACKLOG .. queue, id) == 1 then
      return id
    end
  end
end

-- Fill the list from the backlog.
local function refill(queue)
  for _ = redis.call('LLEN', LIST .. queue) + 1, WINDOW do
    local id = next_of_backlog(queue)
    if not id then
      return
    end
    redis.call('RPUSH', LIST .. queue, id)
  end
end

-- Put a job at the end of its caller's line.
local function line_up(id, queue, caller)
  refill(queue)
  if redis.call('LLEN', LIST .. queue) < WINDOW then
    redis.call('RPUSH', LIST .. queue, id)
    return
  end
  redis.call('ZADD', BACKLOG .. queue, next_score(BACKLOG .. queue), id)
  redis.call('ZADD', backlog_of(queue, caller), next_score(backlog_of(queue, caller)), id)
  if not redis.call('ZSCORE', CALLERS .. queue, caller) then
    redis.call('ZADD', CALLERS .. queue, next_score(CALLERS .. queue), caller)
  end
end

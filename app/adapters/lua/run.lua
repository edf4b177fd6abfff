-- What the scripts on one run share; `redis_scripts.py` puts this before each of them.
-- KEYS: the run, its request, its events. The keys and fields are described in `redis_runs.py`.

local RUN, REQUEST, EVENTS = KEYS[1], KEYS[2], KEYS[3]
local HOME, ID, OPERATION, TTL_MS = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function read(field)
  return redis.call('HGET', RUN, field)
end

-- A client that lost the reply sends the same operation again: what it did stands, and is not done twice.
local function done_before()
  return read('operation') == OPERATION
end

local function is_held_by(token)
  return read('status') == 'running' and read('token') == token
end

-- Puts a run into an index, and drops from it what was made more than a run's life before this one.
local function add_to_index(key, member)
  local oldest = tonumber(string.sub(member, 1, 16)) - TTL_MS * 1000
  redis.call('ZADD', key, 0, member)
  redis.call('ZREMRANGEBYLEX', key, '-', string.format('(%016.0f', math.max(oldest, 0)))
  redis.call('PEXPIRE', key, TTL_MS)
end

local function status_index(status)
  return HOME .. 'runs:status:' .. status
end

local function enter_status(status)
  local before, member = read('status'), read('member')
  if before == status then
    return
  end
  if before then
    redis.call('ZREM', status_index(before), member)
  end
  redis.call('HSET', RUN, 'status', status)
  add_to_index(status_index(status), member)
end

local function write_body(body)
  redis.call('HSET', RUN, 'body', body, 'operation', OPERATION)
end

-- Keys under which the run's answers may be cached, a line each: DELETE takes them along.
local function add_cache_keys(lines)
  if lines ~= '' then
    redis.call('HSET', RUN, 'cache_keys', read('cache_keys') .. lines)
  end
end

-- Within JSON a bare quote can't be part of a value, and of the fields that hold caller's text none comes before
-- status: the first match is the run's own.
local function body_with_status(from, to)
  local body = read('body')
  local first, last = string.find(body, '"status":"' .. from .. '"', 1, true)
  return string.sub(body, 1, first - 1) .. '"status":"' .. to .. '"' .. string.sub(body, last + 1)
end

local function add_event(name, data)
  redis.call('XADD', EVENTS, '*', 'event', name, 'data', data)
  redis.call('PEXPIRE', EVENTS, redis.call('PTTL', RUN))
end

local function notify()
  redis.call('PUBLISH', 'assay:changed', HOME .. ID)
end

-- Most who watch a run wait for its end and are not woken for its steps.
local function notify_step()
  redis.call('PUBLISH', 'assay:changed', HOME .. ID .. ' step')
end

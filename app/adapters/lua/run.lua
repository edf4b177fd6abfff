-- What the scripts on one run share; `redis_scripts.py` puts this before each of them.
-- KEYS: the run, its request, its events, the due index. The keys and fields are described in `redis_runs.py`.

local RUN, REQUEST, EVENTS, DUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local HOME, ID, OPERATION, TTL_MS = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
-- How long a run may wait, and how long after its lease's end it may lie, before somebody looks what became of it.
local WAITING_MS, LEFT_MS = 30000, 10000

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

local function look_in(milliseconds)
  redis.call('ZADD', DUE, string.format('%.0f', now_us() / 1000 + milliseconds), RUN)
end

local function hold(lease_ms)
  redis.call('HSET', RUN, 'lease_us', string.format('%.0f', now_us() + lease_ms * 1000))
  look_in(lease_ms + LEFT_MS)
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
  if status == 'running' then
    return
  end
  redis.call('HSET', RUN, 'lease_us', 0)
  if status == 'queued' then
    look_in(WAITING_MS)
  else
    redis.call('ZREM', DUE, RUN)
  end
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

-- The end of a run's body, of which nothing is text of a caller or a judge: the last match is the run's own. Returns
-- what comes before, attempts, the entries of the history, and what follows. Older bodies have no history.
local function parted(body)
  local head, attempts, history, rest =
    string.match(body, '^(.*"attempts":)(%d+),"history":%[([^%]]*)%](,"createdAt":.*)$')
  if not head then
    head, attempts, rest = string.match(body, '^(.*"attempts":)(%d+)(,"createdAt":.*)$')
  end
  return head, tonumber(attempts), history or '', rest
end

local function joined(head, attempts, history, rest)
  return string.format('%s%d,"history":[%s]%s', head, attempts, history, rest)
end

-- The entries of a history, the last of them ended if it was open; `moment` is JSON.
local function with_last_ended(history, outcome, moment)
  local before = string.match(history, '^(.*)"endedAt":null,"outcome":null}$')
  return before and before .. '"endedAt":' .. moment .. ',"outcome":"' .. outcome .. '"}' or history
end

-- The run's body with its open attempt, if there is one, ended.
local function with_attempt_ended(body, outcome, moment)
  local head, attempts, history, rest = parted(body)
  return joined(head, attempts, with_last_ended(history, outcome, moment), rest)
end

-- The run's body with one more attempt, and no more than `limit` of them remembered.
local function with_attempt_begun(body, moment, limit)
  local head, attempts, history, rest = parted(body)
  attempts = attempts + 1
  local entry = string.format('{"number":%d,"startedAt":%s,"endedAt":null,"outcome":null}', attempts, moment)
  history = history == '' and entry or history .. ',' .. entry
  local _, count = string.gsub(history, '{', '')
  for _ = limit + 1, count do
    history = string.match(history, '^{.-},(.*)$')
  end
  return joined(head, attempts, history, string.gsub(rest, '"startedAt":null', '"startedAt":' .. moment, 1))
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

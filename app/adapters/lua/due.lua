-- The runs that somebody should look after now, each put off, so that no other process gets them at once.
-- KEYS: the due index. ARGV: how many at most, for how many milliseconds they are put off.
-- Returns for each: its key, and its deadline (Unix time in milliseconds, '' when it has none).
local DUE, limit, pause_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local due = {}
for _, run in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', now_ms, 'LIMIT', 0, limit)) do
  local status, deadline_ms = unpack(redis.call('HMGET', run, 'status', 'deadline_ms'))
  if status == 'queued' or status == 'running' then
    redis.call('ZADD', DUE, string.format('%.0f', now_ms + pause_ms), run)
    due[#due + 1] = run
    due[#due + 1] = deadline_ms or ''
  else
    -- The run's time to live is over.
    redis.call('ZREM', DUE, run)
  end
end
return due

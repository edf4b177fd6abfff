-- ARGV: prefix, a queue. Returns how many workers listen on it and have shown themselves within their lease, and when
-- one of them last did ('' when none).
local alive, last = 0, ''
for _, worker in ipairs(redis.call('SMEMBERS', P .. 'workers:' .. ARGV[2])) do
  if redis.call('EXISTS', worker) == 1 then
    alive = alive + 1
    -- RQ's moments sort as text.
    local beat = redis.call('HGET', worker, 'last_heartbeat') or ''
    last = beat > last and beat or last
  end
end
return {alive, last}

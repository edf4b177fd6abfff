local body, deadline_ms = ARGV[5], ARGV[6]

local status = read('status')
if status == 'queued' and done_before() then
  return 1
end
if status ~= 'failed' and status ~= 'expired' and status ~= 'cancelled' then
  return 0
end
write_body(body)
enter_status('queued')
redis.call('HSET', RUN, 'losses', 0, 'deadline_ms', deadline_ms)
redis.call('PEXPIRE', RUN, TTL_MS)
redis.call('PEXPIRE', REQUEST, TTL_MS)
-- The events of the attempt before would end a listener's stream.
redis.call('DEL', EVENTS)
notify()
return 1

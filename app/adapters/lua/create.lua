local body, request, status, fingerprint = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local member, idempotency, lease_ms, deadline_ms = ARGV[9], ARGV[10], tonumber(ARGV[11]), ARGV[12]

if redis.call('EXISTS', RUN) == 1 then
  local is_new, before = done_before(), read('status')
  -- Whoever repeats the request is told of the run and counts on it: it can't be withdrawn any more.
  if not is_new and (before == 'queued' or before == 'running') and not read('repeated') then
    redis.call('HSET', RUN, 'repeated', 1)
  end
  return {is_new and 1 or 0, unpack(redis.call('HMGET', RUN, 'body', 'status', 'fingerprint'))}
end

local indexes = {}
for i = 13, #ARGV do
  indexes[#indexes + 1] = ARGV[i]
  add_to_index(ARGV[i], member)
end
redis.call('HSET', RUN, 'member', member, 'fingerprint', fingerprint,
  'idempotency', idempotency, 'indexes', table.concat(indexes, '\n'), 'cache_keys', '', 'token', 0, 'losses', 0,
  'deadline_ms', deadline_ms)
enter_status(status)
if status == 'running' then
  redis.call('HSET', RUN, 'token', 1)
  hold(lease_ms)
end
write_body(body)
redis.call('SET', REQUEST, request, 'PX', TTL_MS)
redis.call('PEXPIRE', RUN, TTL_MS)
notify()
return {1, body, status, fingerprint}

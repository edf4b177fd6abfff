local body, request, status, fingerprint = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local member, idempotency, lease_ms = ARGV[9], ARGV[10], tonumber(ARGV[11])

if redis.call('EXISTS', RUN) == 1 then
  return {done_before() and 1 or 0, unpack(redis.call('HMGET', RUN, 'body', 'status', 'fingerprint'))}
end

local indexes = {}
for i = 12, #ARGV do
  indexes[#indexes + 1] = ARGV[i]
  add_to_index(ARGV[i], member)
end
redis.call('HSET', RUN, 'member', member, 'fingerprint', fingerprint,
  'idempotency', idempotency, 'indexes', table.concat(indexes, '\n'), 'cache_keys', '', 'token', 0, 'lease_us', 0)
if status == 'running' then
  redis.call('HSET', RUN, 'token', 1, 'lease_us', string.format('%.0f', now_us() + lease_ms * 1000))
end
enter_status(status)
write_body(body)
redis.call('SET', REQUEST, request, 'PX', TTL_MS)
redis.call('PEXPIRE', RUN, TTL_MS)
notify()
return {1, body, status, fingerprint}

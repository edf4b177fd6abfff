local member = read('member')
if not member then
  return false
end
local idempotency, cache_keys = read('idempotency'), read('cache_keys')
for key in string.gmatch(read('indexes'), '[^\n]+') do
  redis.call('ZREM', key, member)
end
redis.call('ZREM', status_index(read('status')), member)
-- The key may have outlived its time and stand for other runs by now.
if idempotency ~= '' and string.find(redis.call('GET', idempotency) or '', '"' .. ID .. '"', 1, true) then
  redis.call('DEL', idempotency)
end
redis.call('DEL', RUN, REQUEST, EVENTS)
redis.call('ZREM', DUE, RUN)
notify()
return cache_keys

-- KEYS: window, leases. Frees the place of a call that is over and corrects its tokens, once.
local lease, second, correction = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('ZREM', KEYS[2], lease) == 1 then
  local counted = redis.call('HGET', KEYS[1], 't' .. second)
  if counted then
    redis.call('HSET', KEYS[1], 't' .. second, string.format('%.0f', math.max(0, counted + correction)))
  end
end
return 1

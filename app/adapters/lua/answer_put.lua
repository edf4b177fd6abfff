-- KEYS: answer, lock. Stores the answer, and ends the lock when it is this token's.
local answer, ttl_ms, token = ARGV[1], ARGV[2], ARGV[3]

redis.call('SET', KEYS[1], answer, 'PX', ttl_ms)
if redis.call('GET', KEYS[2]) == token then
  redis.call('DEL', KEYS[2])
end
return 1

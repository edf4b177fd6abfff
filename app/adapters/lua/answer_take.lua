-- KEYS: answer, lock. Returns the answer, or 1 when the lock is this token's now, or 0 when another asks.
local token, lock_ms = ARGV[1], ARGV[2]

local answer = redis.call('GET', KEYS[1])
if answer then
  return answer
end
if redis.call('SET', KEYS[2], token, 'NX', 'PX', lock_ms) then
  return 1
end
-- A client that lost the reply asks again for what it has.
return redis.call('GET', KEYS[2]) == token and 1 or 0

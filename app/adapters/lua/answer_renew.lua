-- KEYS: lock. Returns 1 when the lock was still this token's.
local token, lock_ms = ARGV[1], ARGV[2]

if redis.call('GET', KEYS[1]) ~= token then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], lock_ms)

-- KEYS: the tenant's scorers, the scorer's versions. Makes a definition the scorer's newest, unless its version is known.
local id, version, digest, definition = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local max_scorers, max_versions = tonumber(ARGV[5]), tonumber(ARGV[6])

local known = redis.call('HGET', KEYS[2], version)
if known then
  return known == digest and 'same' or 'other_body'
end
if redis.call('HEXISTS', KEYS[1], id) == 0 and redis.call('HLEN', KEYS[1]) >= max_scorers then
  return 'too_many_scorers'
end
if redis.call('HLEN', KEYS[2]) >= max_versions then
  return 'too_many_versions'
end
redis.call('HSET', KEYS[1], id, definition)
redis.call('HSET', KEYS[2], version, digest)
return 'new'

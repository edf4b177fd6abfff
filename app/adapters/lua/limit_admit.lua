-- KEYS: window, leases. Admits one call, or says how long to wait and for which limit.
-- The window holds, by second, r{SECOND} requests and t{SECOND} tokens of the calls that were admitted.
-- Returns {0, '', second of admission} or {milliseconds, limit}; milliseconds are -1 when only the end of a call tells.
local WINDOW, LEASES = KEYS[1], KEYS[2]
local lease, lease_ms, kept_s = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most_requests, most_tokens, most_in_flight = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local tokens, now_ms = tonumber(ARGV[7]), tonumber(ARGV[8])

if not now_ms then
  local time = redis.call('TIME')
  now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
end
local now = math.floor(now_ms / 1000)

-- A client that lost the reply asks again for what it has.
if redis.call('ZSCORE', LEASES, lease) then
  return {0, '', now}
end
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', now_ms)
if most_in_flight > 0 and redis.call('ZCARD', LEASES) >= most_in_flight then
  return {-1, 'in_flight'}
end

local by_second = {r = {}, t = {}}
local used = {r = 0, t = 0}
local entries = redis.call('HGETALL', WINDOW)
for i = 1, #entries, 2 do
  local kind, second = string.sub(entries[i], 1, 1), tonumber(string.sub(entries[i], 2))
  -- What lies ahead was written before the server's clock was set back.
  if second < now - kept_s or second > now + kept_s then
    redis.call('HDEL', WINDOW, entries[i])
  else
    local count = tonumber(entries[i + 1])
    by_second[kind][second] = count
    used[kind] = used[kind] + count
  end
end

-- Milliseconds until no more than `most` is left of a kind.
local function until_left(kind, most)
  local left = used[kind]
  for second = now - kept_s, now + kept_s do
    left = left - (by_second[kind][second] or 0)
    if left <= most then
      return (second + kept_s + 1) * 1000 - now_ms
    end
  end
  return kept_s * 1000
end

if most_requests > 0 and used.r + 1 > most_requests then
  return {until_left('r', most_requests - 1), 'requests'}
end
-- A call larger than the limit would never fit: it goes alone, into an empty window.
if most_tokens > 0 and used.t > 0 and used.t + tokens > most_tokens then
  return {until_left('t', math.max(0, most_tokens - tokens)), 'tokens'}
end

redis.call('HINCRBY', WINDOW, 'r' .. now, 1)
redis.call('HINCRBY', WINDOW, 't' .. now, tokens)
redis.call('PEXPIRE', WINDOW, (kept_s + 2) * 1000)
redis.call('ZADD', LEASES, now_ms + lease_ms, lease)
redis.call('PEXPIRE', LEASES, math.max(lease_ms, redis.call('PTTL', LEASES)))
return {0, '', now}

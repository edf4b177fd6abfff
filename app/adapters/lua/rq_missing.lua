-- ARGV: prefix, number of queues, the queues, then ids of jobs. Returns those that neither wait nor are executed.
local count = tonumber(ARGV[2])
local queues = {unpack(ARGV, 3, 2 + count)}
local known = {}
for _, queue in ipairs(queues) do
  for _, id in ipairs(redis.call('LRANGE', LIST .. queue, 0, -1)) do
    known[id] = true
  end
  for _, member in ipairs(redis.call('ZRANGE', P .. 'wip:' .. queue, 0, -1)) do
    known[string.match(member, '^(.*):') or member] = true
  end
end

local function is_known(id)
  if known[id] then
    return true
  end
  for _, queue in ipairs(queues) do
    if redis.call('ZSCORE', BACKLOG .. queue, id) then
      return true
    end
  end
end

local missing = {}
for i = 3 + count, #ARGV do
  if redis.call('EXISTS', JOB .. ARGV[i]) == 0 or not is_known(ARGV[i]) then
    missing[#missing + 1] = ARGV[i]
  end
end
return missing

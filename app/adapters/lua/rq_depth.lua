-- ARGV: prefix, the queues. Returns for each: how many wait, and since when the heads of its list and of its backlog
-- have ('' when unknown).
local function since(id)
  return id and redis.call('HGET', JOB .. id, 'enqueued_at') or ''
end

local depth = {}
for i = 2, #ARGV do
  local list, backlog = LIST .. ARGV[i], BACKLOG .. ARGV[i]
  depth[#depth + 1] = length(ARGV[i])
  depth[#depth + 1] = since(redis.call('LINDEX', list, 0))
  depth[#depth + 1] = since(redis.call('ZRANGE', backlog, 0, 0)[1])
end
return depth

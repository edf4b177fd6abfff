-- ARGV: prefix, the queues. Returns for each: how many wait, and since when the first of them has ('' when unknown).
local depth = {}
for i = 2, #ARGV do
  local head = redis.call('LINDEX', QUEUE .. ARGV[i], 0)
  depth[#depth + 1] = redis.call('LLEN', QUEUE .. ARGV[i])
  depth[#depth + 1] = head and redis.call('HGET', JOB .. head, 'enqueued_at') or ''
end
return depth

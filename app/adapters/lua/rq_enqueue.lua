-- Put a job in line unless it waits already or the queues are full: 'queued', 'waiting' or 'full'.
-- ARGV: prefix, id, queue, ttl, caller, how many may wait in all queues together ('' when as many as come), number of
-- queues, the queues, then the job's fields and values.
local id, queue, ttl, caller, limit, count = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local queues = {unpack(ARGV, 8, 7 + count)}

local status, waits, waiting = redis.call('HGET', JOB .. id, 'status'), false, 0
for _, name in ipairs(queues) do
  waiting = waiting + length(name)
  waits = waits or redis.call('ZSCORE', BACKLOG .. name, id) or redis.call('LPOS', LIST .. name, id)
end
if waits and status == 'queued' then
  return 'waiting'
end
if limit and waiting >= limit then
  return 'full'
end
if waits or status then
  remove(id, queues)
end
redis.call('HSET', JOB .. id, unpack(ARGV, 8 + count))
redis.call('EXPIRE', JOB .. id, ttl)
redis.call('SADD', P .. 'queues', LIST .. queue)
line_up(id, queue, caller)
return 'queued'

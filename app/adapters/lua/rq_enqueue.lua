-- Put a job in line unless it waits already: 'queued' or 'waiting'.
-- ARGV: prefix, id, queue, ttl, caller, number of queues, the queues, then the job's fields and values.
local id, queue, ttl, caller, count = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local queues = {unpack(ARGV, 7, 6 + count)}

local status, waits = redis.call('HGET', JOB .. id, 'status'), false
for _, name in ipairs(queues) do
  waits = waits or redis.call('ZSCORE', BACKLOG .. name, id) or redis.call('LPOS', LIST .. name, id)
end
if waits and status == 'queued' then
  return 'waiting'
end
if waits or status then
  remove(id, queues)
end
redis.call('HSET', JOB .. id, unpack(ARGV, 7 + count))
redis.call('EXPIRE', JOB .. id, ttl)
redis.call('SADD', P .. 'queues', LIST .. queue)
line_up(id, queue, caller)
return 'queued'

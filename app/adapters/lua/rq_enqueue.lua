-- Put a job in line unless it waits already: 'queued' or 'waiting'.
-- ARGV: prefix, id, queue, ttl, number of queues, the queues, then the job's fields and values.
local id, queue, ttl, count = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local queues = {unpack(ARGV, 6, 5 + count)}

local status = redis.call('HGET', JOB .. id, 'status')
for _, name in ipairs(queues) do
  if status == 'queued' and redis.call('LPOS', QUEUE .. name, id) then
    return 'waiting'
  end
end
if status then
  remove(id, queues)
end
redis.call('HSET', JOB .. id, unpack(ARGV, 6 + count))
redis.call('EXPIRE', JOB .. id, ttl)
redis.call('SADD', P .. 'queues', QUEUE .. queue)
redis.call('RPUSH', QUEUE .. queue, id)
return 'queued'

-- Put a job in line unless it waits already: 'queued', 'waiting', or 'full' and nothing is written.
-- ARGV: prefix, id, queue, limit, ttl, number of queues, the queues, then the job's fields and values.
local id, queue, limit, ttl, count = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local queues = {unpack(ARGV, 7, 6 + count)}

local status = redis.call('HGET', JOB .. id, 'status')
local waiting = 0
for _, name in ipairs(queues) do
  if status == 'queued' and redis.call('LPOS', QUEUE .. name, id) then
    return 'waiting'
  end
  waiting = waiting + redis.call('LLEN', QUEUE .. name)
end
if waiting >= limit then
  return 'full'
end
if status then
  remove(id, queues)
end
redis.call('HSET', JOB .. id, unpack(ARGV, 7 + count))
redis.call('EXPIRE', JOB .. id, ttl)
redis.call('SADD', P .. 'queues', QUEUE .. queue)
redis.call('RPUSH', QUEUE .. queue, id)
return 'queued'

-- RQ's names, as rq 3.0 writes them. ARGV[1]: RQ's key prefix. What follows it is the script's own.
local P = ARGV[1] .. ':'
local QUEUE, JOB, RESULTS = P .. 'queue:', P .. 'job:', P .. 'results:'

-- Delete every trace of a job, wherever it stands in these queues.
local function remove(id, queues)
  local worker = redis.call('HGET', JOB .. id, 'worker_name') or ''
  for _, execution in ipairs(redis.call('ZRANGE', P .. 'executions:' .. id, 0, -1)) do
    local member = id .. ':' .. execution
    redis.call('DEL', P .. 'execution:' .. member)
    redis.call('SREM', P .. 'worker:' .. worker .. ':executions', member)
    for _, queue in ipairs(queues) do
      redis.call('ZREM', P .. 'wip:' .. queue, member)
    end
  end
  for _, queue in ipairs(queues) do
    redis.call('LREM', QUEUE .. queue, 0, id)
    redis.call('LREM', QUEUE .. queue .. ':intermediate', 0, id)
    redis.call('DEL', QUEUE .. queue .. ':intermediate:first_seen:' .. id)
    for _, registry in ipairs({'failed', 'finished', 'canceled', 'deferred', 'scheduled', 'ready'}) do
      redis.call('ZREM', P .. registry .. ':' .. queue, id)
    end
  end
  redis.call('DEL', JOB .. id, JOB .. id .. ':dependents', JOB .. ':' .. id .. ':dependencies', RESULTS .. id,
    P .. 'executions:' .. id)
end

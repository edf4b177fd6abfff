-- How rq 3.0 keeps executions and what becomes of jobs; tests/integration/worker compares it with RQ's own worker.
-- ARGV[1]: RQ's key prefix, ARGV[2]: the worker's name, ARGV[3] and ARGV[4]: now, as RQ's jobs and executions have it,
-- ARGV[5]: seconds that a lease lasts. What follows is the script's own.
local P, WORKER, NOW, NOW_S, LEASE = ARGV[1] .. ':', ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local JOB = P .. 'job:'
local THIS = P .. 'worker:' .. WORKER
-- Leases are compared on the server's clock, so that workers need not agree on theirs.
local TIME = tonumber(redis.call('TIME')[1])
local DAY = 86400

local function executions_of(worker)
  return P .. 'worker:' .. worker .. ':executions'
end

-- Change the worker's own hash, unless it ran out: it must not come back without its end.
local function note(...)
  if redis.call('EXISTS', THIS) == 1 then
    redis.call('HSET', THIS, ...)
  end
end

-- Take or renew the right to execute a job.
local function hold(id, execution, queue, since)
  local member = id .. ':' .. execution
  redis.call('HSET', P .. 'execution:' .. member, 'id', execution, 'job_id', id, 'created_at', since,
    'last_heartbeat', NOW_S, 'worker_name', WORKER)
  redis.call('EXPIRE', P .. 'execution:' .. member, LEASE)
  redis.call('ZADD', P .. 'executions:' .. id, TIME + LEASE + 60, execution)
  redis.call('EXPIRE', P .. 'executions:' .. id, LEASE + 60)
  redis.call('ZADD', P .. 'wip:' .. queue, TIME + LEASE, member)
  redis.call('SADD', executions_of(WORKER), member)
  redis.call('EXPIRE', executions_of(WORKER), LEASE + 60)
end

-- Give that right up; whether it was still ours.
local function let_go(id, execution, queue, worker)
  local member = id .. ':' .. execution
  redis.call('DEL', P .. 'execution:' .. member)
  redis.call('ZREM', P .. 'executions:' .. id, execution)
  redis.call('SREM', executions_of(worker), member)
  return redis.call('ZREM', P .. 'wip:' .. queue, member) == 1
end

-- Delete a job that is done.
local function forget(id)
  redis.call('DEL', JOB .. id, JOB .. id .. ':dependents', JOB .. ':' .. id .. ':dependencies', P .. 'results:' .. id,
    P .. 'executions:' .. id)
end

-- Put a job back in front of the line.
local function put_back(id, queue)
  redis.call('HSET', JOB .. id, 'status', 'queued')
  local ttl = redis.call('HGET', JOB .. id, 'ttl')
  if ttl then
    redis.call('EXPIRE', JOB .. id, ttl)
  end
  redis.call('LPUSH', P .. 'queue:' .. queue, id)
end

-- Put a job back at the cost of one of its retries; false when it has none left.
local function retry(id, queue)
  if (tonumber(redis.call('HGET', JOB .. id, 'retries_left')) or 0) < 1 then
    return false
  end
  redis.call('HINCRBY', JOB .. id, 'retries_left', -1)
  redis.call('HSET', JOB .. id, 'enqueued_at', NOW)
  put_back(id, queue)
  return true
end

-- Keep a job as failed; `result` is what RQ's results say of it beside their type.
local function fail(id, queue, status, result)
  local ttl = math.min(tonumber(redis.call('HGET', JOB .. id, 'failure_ttl')) or DAY, DAY)
  redis.call('HSET', JOB .. id, 'status', status)
  redis.call('ZADD', P .. 'failed:' .. queue, TIME + ttl, id)
  redis.call('XADD', P .. 'results:' .. id, 'MAXLEN', '~', 10, '*', 'type', 2, unpack(result))
  redis.call('EXPIRE', JOB .. id, ttl)
  redis.call('EXPIRE', P .. 'results:' .. id, ttl)
end

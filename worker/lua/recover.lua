-- Give the jobs of dead workers another try, clear away what ran out and refill lists that RQ's tools emptied. Any
-- worker may do it at any time.
-- ARGV: what RQ's result says of a job with no try left, then the queues. Returns how many were put back and failed.
local text = ARGV[6]
local MAX_JOBS = 500
local put_back_count, failed_count = 0, 0

for i = 7, #ARGV do
  local queue = ARGV[i]
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', P .. 'wip:' .. queue, '-inf', TIME, 'LIMIT', 0, MAX_JOBS)) do
    local id, execution = string.match(member, '^(.*):(.*)$')
    if not id then
      redis.call('ZREM', P .. 'wip:' .. queue, member)
    else
      local state = redis.call('HMGET', JOB .. id, 'status', 'worker_name')
      let_go(id, execution, queue, state[2] or '')
      if state[1] == 'started' then
        if retry(id, queue) then
          put_back_count = put_back_count + 1
        else
          fail(id, queue, 'failed', {'worker_name', '', 'exc_string', text})
          failed_count = failed_count + 1
        end
      end
    end
  end
  redis.call('ZREMRANGEBYSCORE', P .. 'failed:' .. queue, 0, TIME)
  refill(queue)
  for _, worker in ipairs(redis.call('SMEMBERS', P .. 'workers:' .. queue)) do
    if redis.call('EXISTS', worker) == 0 then
      redis.call('SREM', P .. 'workers:' .. queue, worker)
      redis.call('SREM', P .. 'workers', worker)
    end
  end
end
return {put_back_count, failed_count}

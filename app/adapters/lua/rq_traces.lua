-- Delete every trace of a job, wherever it stands in these queues.
local function remove(id, queues)
  local worker, caller = unpack(redis.call('HMGET', JOB .. id, 'worker_name', 'caller'))
  for _, execution in ipairs(redis.call('ZRANGE', P .. 'executions:' .. id, 0, -1)) do
    local member = id .. ':' .. execution
    redis.call('DEL', P .. 'execution:' .. member)
    redis.call('SREM', P .. 'worker:' .. (worker or '') .. ':executions', member)
    for _, queue in ipairs(queues) do
      redis.call('ZREM', P .. 'wip:' .. queue, member)
    end
  end
  for _, queue in ipairs(queues) do
    redis.call('LREM', LIST .. queue, 0, id)
    redis.call('LREM', LIST .. queue .. ':intermediate', 0, id)
    redis.call('DEL', LIST .. queue .. ':intermediate:first_seen:' .. id)
    leave_backlog(id, queue, caller or '')
    for _, registry in ipairs({'failed', 'finished', 'canceled', 'deferred', 'scheduled', 'ready'}) do
      redis.call('ZREM', P .. registry .. ':' .. queue, id)
    end
  end
  redis.call('DEL', JOB .. id, JOB .. id .. ':dependents', JOB .. ':' .. id .. ':dependencies', P .. 'results:' .. id,
    P .. 'executions:' .. id)
end

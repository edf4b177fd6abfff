-- Show that the worker lives and renew its leases. A worker whose hash ran out, in an outage, is registered again.
-- ARGV: number of queues, the queues, number of fields and values, the worker's hash, then for each execution: id,
-- queue, execution, when it began.
local count = tonumber(ARGV[6])
local fields = 8 + count
local executions = fields + tonumber(ARGV[7 + count])

redis.call('HSET', THIS, unpack(ARGV, fields, executions - 1))
redis.call('EXPIRE', THIS, LEASE)
redis.call('SADD', P .. 'workers', THIS)
for i = 7, 6 + count do
  redis.call('SADD', P .. 'workers:' .. ARGV[i], THIS)
end
for i = executions, #ARGV, 4 do
  local id, queue, execution, since = unpack(ARGV, i, i + 3)
  -- A lease that somebody else ended is not taken back.
  if redis.call('ZSCORE', P .. 'wip:' .. queue, id .. ':' .. execution) then
    hold(id, execution, queue, since)
    if redis.call('HGET', JOB .. id, 'status') == 'started' then
      redis.call('HSET', JOB .. id, 'last_heartbeat', NOW)
    end
  end
end

-- Take waiting jobs and begin their executions, in one step: a worker that dies at any moment leaves leases, no gap.
-- ARGV: how many, the number of the next turn, what execution ids begin with, then the queues, highest first.
-- Returns false when RQ's workers are suspended, else for each job: id, queue, execution and the job's hash.
local wanted, turn, batch = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local queues = {unpack(ARGV, 9)}
-- Every fifth turn is offered to the lower queues first, one after the other, so that none of them starves.
local SHARE = 5
-- Ids that are no job's (any more) are passed over, but not without end.
local MAX_POPS = wanted + 1000

if redis.call('EXISTS', P .. 'suspended') == 1 then
  note('state', 'suspended')
  return false
end

local function pop_of(queue)
  local id = redis.call('LPOP', LIST .. queue)
  if not id then
    refill(queue)
    id = redis.call('LPOP', LIST .. queue)
  end
  return id
end

local function pop()
  if #queues > 1 and turn % SHARE == SHARE - 1 then
    local offered = queues[2 + math.floor(turn / SHARE) % (#queues - 1)]
    local id = pop_of(offered)
    if id then
      return id, offered
    end
  end
  for _, queue in ipairs(queues) do
    local id = pop_of(queue)
    if id then
      return id, queue
    end
  end
end

local taken = {}
for _ = 1, MAX_POPS do
  if #taken == wanted * 4 then
    break
  end
  local id, queue = pop()
  if not id then
    break
  end
  local is_job = string.find(id, '^[%w_-]+$') and redis.call('TYPE', JOB .. id).ok == 'hash'
  if is_job and redis.call('HGET', JOB .. id, 'status') ~= 'started' then
    local fields = redis.call('HGETALL', JOB .. id)
    local execution = batch .. turn
    hold(id, execution, queue, NOW_S)
    redis.call('HSET', JOB .. id, 'status', 'started', 'started_at', NOW, 'last_heartbeat', NOW, 'worker_name', WORKER)
    redis.call('PERSIST', JOB .. id)
    for _, value in ipairs({id, queue, execution, fields}) do
      taken[#taken + 1] = value
    end
    turn = turn + 1
  end
end
for _, queue in ipairs(queues) do
  refill(queue)
end
note('state', redis.call('SCARD', executions_of(WORKER)) > 0 and 'busy' or 'idle')
return taken

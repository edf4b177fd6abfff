-- Record how executions ended. Bears repetition, and changes nothing of a job that began anew, here or elsewhere.
-- ARGV: what is left of the data of a refused job, then for each execution: id, queue, execution, when the job began,
-- when the execution did, outcome, seconds worked, and what RQ's result says of a failure.
local refused_data = ARGV[6]
local succeeded, failed, worked = 0, 0, 0

local function count(field, amount)
  if amount > 0 then
    note(field, amount + (tonumber(redis.call('HGET', THIS, field)) or 0))
  end
end

for i = 7, #ARGV, 8 do
  local id, queue, execution, began, since, outcome, seconds, text = unpack(ARGV, i, i + 7)
  local held = let_go(id, execution, queue, WORKER)
  local state = redis.call('HMGET', JOB .. id, 'status', 'started_at')
  local result = {'worker_name', WORKER, 'exc_string', text, 'execution_id', execution,
    'execution_started_at', since, 'execution_ended_at', NOW_S}

  if state[1] == 'started' and state[2] == began then
    if outcome == 'refused' then
      redis.call('DEL', JOB .. id)
      redis.call('HSET', JOB .. id, 'data', refused_data, 'description', 'refused', 'origin', queue,
        'created_at', NOW, 'started_at', began, 'worker_name', WORKER)
    end
    redis.call('HSET', JOB .. id, 'ended_at', NOW)
    if outcome == 'done' then
      forget(id)
    elseif outcome == 'returned' then
      put_back(id, queue)
    elseif outcome == 'stopped' then
      fail(id, queue, 'stopped', result)
    elseif not retry(id, queue) then
      fail(id, queue, 'failed', result)
    end
  end

  if held and outcome == 'done' then
    succeeded = succeeded + 1
  elseif held and outcome ~= 'returned' then
    failed = failed + 1
  end
  worked = worked + (held and tonumber(seconds) or 0)
end

count('successful_job_count', succeeded)
count('failed_job_count', failed)
count('total_working_time', worked)
note('state', redis.call('SCARD', executions_of(WORKER)) > 0 and 'busy' or 'idle')

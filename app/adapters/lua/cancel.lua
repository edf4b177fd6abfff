local completed_at = ARGV[5]

local status = read('status')
if not status then
  return false
end
if status == 'queued' or status == 'running' then
  local body = body_with_status(status, 'cancelled')
  -- The last match is the run's own: of the fields that hold caller's text none comes after completedAt.
  local first, last = string.find(body, '.*"completedAt":null')
  if first then
    body = string.sub(body, 1, last - 4) .. completed_at .. string.sub(body, last + 1)
  end
  write_body(body)
  enter_status('cancelled')
  redis.call('HSET', RUN, 'lease_us', 0)
  add_event('run', body)
  notify()
end
return redis.call('HMGET', RUN, 'body', 'status', 'fingerprint')

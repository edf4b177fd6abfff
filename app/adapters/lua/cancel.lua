local completed_at = ARGV[5]

local status = read('status')
if not status then
  return false
end
if status == 'queued' or status == 'running' then
  local head, attempts, history, rest = parted(body_with_status(status, 'cancelled'))
  rest = string.gsub(rest, '"completedAt":null', '"completedAt":' .. completed_at, 1)
  local body = joined(head, attempts, with_last_ended(history, 'cancelled', completed_at), rest)
  write_body(body)
  enter_status('cancelled')
  add_event('run', body)
  notify()
end
return redis.call('HMGET', RUN, 'body', 'status', 'fingerprint')

local lease_ms = tonumber(ARGV[5])

local status = read('status')
local request = redis.call('GET', REQUEST)
if not request then
  return false
end
if not done_before() then
  local is_free = status == 'queued' or (status == 'running' and tonumber(read('lease_us')) <= now_us())
  if not is_free then
    return false
  end
  redis.call('HINCRBY', RUN, 'token', 1)
  redis.call('HSET', RUN, 'lease_us', string.format('%.0f', now_us() + lease_ms * 1000), 'operation', OPERATION)
  if status == 'queued' then
    write_body(body_with_status('queued', 'running'))
    enter_status('running')
  end
  notify()
end
return {tonumber(read('token')), read('body'), request}

local seen, body = ARGV[5], ARGV[6]

local status = read('status')
if status == 'cancelled' and done_before() then
  return read('etag')
end
if (status ~= 'queued' and status ~= 'running') or read('etag') ~= seen then
  return false
end
local etag = write_body(body)
enter_status('cancelled')
redis.call('HSET', RUN, 'lease_us', 0)
add_event('run', body)
notify()
return etag

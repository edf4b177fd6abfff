local token = ARGV[5]

if redis.call('EXISTS', RUN) == 1 and done_before() then
  return 1
end
if not is_held_by(token) then
  return 0
end
write_body(body_with_status('running', 'queued'))
enter_status('queued')
redis.call('HSET', RUN, 'lease_us', 0)
notify()
return 1

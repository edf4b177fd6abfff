local token, cache_keys = ARGV[5], ARGV[6]

if redis.call('EXISTS', RUN) == 1 and done_before() then
  return 1
end
if not is_held_by(token) then
  return 0
end
write_body(body_with_status('running', 'queued'))
enter_status('queued')
add_cache_keys(cache_keys)
redis.call('HSET', RUN, 'lease_us', 0)
notify()
return 1

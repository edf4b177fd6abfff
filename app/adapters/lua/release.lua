local token, cache_keys, moment = ARGV[5], ARGV[6], ARGV[7]

if redis.call('EXISTS', RUN) == 1 and done_before() then
  return 1
end
if not is_held_by(token) then
  return 0
end
write_body(with_attempt_ended(body_with_status('running', 'queued'), 'given_back', moment))
enter_status('queued')
add_cache_keys(cache_keys)
notify()
return 1

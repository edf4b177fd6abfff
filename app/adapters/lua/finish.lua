local token, body, status, cache_keys, keep_request = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local last_step = ARGV[10]

if redis.call('EXISTS', RUN) == 1 and done_before() then
  return 1
end
if not is_held_by(token) then
  return 0
end
write_body(body)
enter_status(status)
add_cache_keys(cache_keys)
if keep_request == '0' then
  redis.call('DEL', REQUEST)
end
if last_step ~= '' then
  add_event('step', last_step)
end
add_event('run', body)
notify()
return 1

local token, body, event, cache_keys = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

if not is_held_by(token) then
  return 0
end
if not done_before() then
  write_body(body)
  add_cache_keys(cache_keys)
  if event ~= '' then
    add_event('step', event)
    notify_step()
  end
end
return 1

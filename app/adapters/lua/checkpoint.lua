local token, body, event = ARGV[5], ARGV[6], ARGV[7]

if not is_held_by(token) then
  return 0
end
if not done_before() then
  write_body(body)
  if event ~= '' then
    add_event('step', event)
    notify_step()
  end
end
return 1

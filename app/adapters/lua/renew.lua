local token, lease_ms = ARGV[5], tonumber(ARGV[6])

if not is_held_by(token) then
  return 0
end
hold(lease_ms)
return 1

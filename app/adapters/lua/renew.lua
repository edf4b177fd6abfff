local token, lease_ms = ARGV[5], tonumber(ARGV[6])

if not is_held_by(token) then
  return 0
end
redis.call('HSET', RUN, 'lease_us', string.format('%.0f', now_us() + lease_ms * 1000))
return 1

-- KEYS: pauses of judges. Returns how many milliseconds each still lasts, negative when there is none.
local left = {}
for i, key in ipairs(KEYS) do
  left[i] = redis.call('PTTL', key)
end
return left

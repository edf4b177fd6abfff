-- KEYS: a judge's pause. Lets it last this many milliseconds from now, unless it lasts longer already, and tells the
-- channel the judge's name and the milliseconds.
local milliseconds, channel, name = ARGV[1], ARGV[2], ARGV[3]

if redis.call('PTTL', KEYS[1]) < tonumber(milliseconds) then
  redis.call('SET', KEYS[1], 1, 'PX', milliseconds)
  redis.call('PUBLISH', channel, name .. ' ' .. milliseconds)
end
return 1

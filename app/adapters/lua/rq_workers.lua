-- ARGV: prefix, a queue. Returns how many workers listen on it and have shown themselves within their lease.
local alive = 0
for _, worker in ipairs(redis.call('SMEMBERS', P .. 'workers:' .. ARGV[2])) do
  alive = alive + redis.call('EXISTS', worker)
end
return alive

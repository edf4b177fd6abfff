-- ARGV: prefix, id, the queues.
local queues = {unpack(ARGV, 3)}
remove(ARGV[2], queues)
for _, queue in ipairs(queues) do
  refill(queue)
end

-- Walks the smallest of the indexes from the newest member down and keeps what is in all of them.
-- KEYS: the indexes. Returns the member to go on after (or false) and the bodies.
local home, limit, budget = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local upper, lower = ARGV[4], ARGV[5]
local chunk = #KEYS == 1 and limit + 1 or 200

local smallest = 1
local size = redis.call('ZCARD', KEYS[1])
for i = 2, #KEYS do
  local other = redis.call('ZCARD', KEYS[i])
  if other < size then
    smallest, size = i, other
  end
end

local function in_all(members)
  local kept = {}
  for i = 1, #members do
    kept[i] = true
  end
  for i = 1, #KEYS do
    if i ~= smallest then
      local scores = redis.call('ZMSCORE', KEYS[i], unpack(members))
      for j = 1, #members do
        kept[j] = kept[j] and scores[j] ~= false
      end
    end
  end
  return kept
end

local bodies, last_listed = {}, false
repeat
  local members = redis.call('ZREVRANGEBYLEX', KEYS[smallest], upper, lower, 'LIMIT', 0, chunk)
  if #members == 0 then
    return {false, unpack(bodies)}
  end
  local kept = in_all(members)
  for i = 1, #members do
    -- A member is 16 digits, a colon and the run's id; a run that expired has left its member behind.
    local body = kept[i] and redis.call('HGET', home .. 'run:' .. string.sub(members[i], 18), 'body')
    if body then
      if #bodies == limit then
        return {last_listed, unpack(bodies)}
      end
      bodies[#bodies + 1], last_listed = body, members[i]
    end
  end
  upper = '(' .. members[#members]
  budget = budget - #members
until budget <= 0
return {string.sub(upper, 2), unpack(bodies)}

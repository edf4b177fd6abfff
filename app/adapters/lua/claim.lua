local lease_ms, alone, may_take_over, moment = tonumber(ARGV[5]), ARGV[6] == '1', ARGV[7] == '1', ARGV[8]
local suspect_losses, max_losses, max_history = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

local function losses()
  return tonumber(read('losses') or 0)
end

-- Lost: it ran, and the lease of who executed it ended.
local function begin(was_lost)
  local body = body_with_status(was_lost and 'running' or 'queued', 'running')
  if was_lost then
    redis.call('HINCRBY', RUN, 'losses', 1)
    body = with_attempt_ended(body, 'lost', moment)
  end
  -- What was lost too often is claimed only to be ended.
  if losses() < max_losses then
    body = with_attempt_begun(body, moment, max_history)
  end
  redis.call('HINCRBY', RUN, 'token', 1)
  hold(lease_ms)
  write_body(body)
  enter_status('running')
  notify()
end

local status = read('status')
local request = redis.call('GET', REQUEST)
if not request then
  return false
end
local is_lost = false
if not done_before() then
  is_lost = status == 'running' and tonumber(read('lease_us')) <= now_us()
  if status ~= 'queued' and not (is_lost and may_take_over) then
    return false
  end
  local losses_then = losses() + (is_lost and 1 or 0)
  if suspect_losses <= losses_then and losses_then < max_losses and not alone then
    return 'suspect'
  end
  begin(is_lost)
end
return {tonumber(read('token')), losses(), is_lost and 1 or 0, read('body'), request}

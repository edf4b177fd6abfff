-- Comes before delete.lua: a run that somebody else was told of stays.
if read('repeated') then
  return false
end

-- RQ's names, as rq 3.0 writes them. ARGV[1]: RQ's key prefix. What follows it is the script's own.
local P = ARGV[1] .. ':'
local JOB = P .. 'job:'

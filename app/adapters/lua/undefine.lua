-- KEYS: the tenant's scorers, the scorer's versions. Forgets a scorer; 0 when there was none.
redis.call('DEL', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])

-- ARGV: prefix, id, the queues.
remove(ARGV[2], {unpack(ARGV, 3)})

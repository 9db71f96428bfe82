-- Settles one delivery of an entry, unless it is no longer the delivery in hand: then another one has the say.
-- In one script, so that no entry is in two places, and so that the same call can be made again if its answer was lost.
local stream, dead = KEYS[1], KEYS[2]
local group, consumer, id, deliveries, outcome = unpack(ARGV)

local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
if not pending or pending[2] ~= consumer or pending[4] ~= tonumber(deliveries) then
    return 0
end
if outcome == 'retry' then
    local idle, spent = ARGV[6], ARGV[7]
    redis.call('XCLAIM', stream, group, consumer, 0, id, 'IDLE', idle, 'RETRYCOUNT', spent, 'JUSTID')
    return 1
end
if outcome == 'dead' then
    local payload, err = ARGV[6], ARGV[7]
    redis.call('XADD', dead, '*', 'payload', payload, 'entry', id, 'deliveries', deliveries, 'error', err)
end
return redis.call('XACK', stream, group, id)

-- For redis_exporter --script: the sums over all filters, from INFO, as names and values in turn.
-- It shows them as redis_script_values{key="bf_bloom_num_objects"} and so on.
local found = {}
for name, value in string.gmatch(redis.call('INFO', 'bf'), '(bf_[%w_]+):(%d+)') do
    found[#found + 1] = name
    found[#found + 1] = value
end
return found


/*
 * The scripts that a Redis runs, in Lua: redis_session.c and redis_line.c have the keys and the
 * calls.  KEYS and ARGV are numbered from 1; an answer is an array of strings.
 */


#include "store/redis_call.h"


/* KEYS: 1 session, 2 turns, 3 keys of turns, 4 sessions; ARGV: 1 id, 2 time, 3 age */

#define TOUCH                                                                                    \
    "local function touch(image)"                                                                \
    "  redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])"                                            \
    "  if image ~= '' then redis.call('HSET', KEYS[1], 'image', image)"                          \
    "  else image = redis.call('HGET', KEYS[1], 'image') end "                                   \
    "  local age = tonumber(ARGV[3])"                                                            \
    "  if image then"                                                                            \
    "    redis.call('SET', 'vlm:i:' .. image, ARGV[2], 'EX', math.max(age, 3600)) end "          \
    "  for i = 1, 3 do"                                                                          \
    "    if age > 0 then redis.call('EXPIRE', KEYS[i], age)"                                     \
    "    else redis.call('PERSIST', KEYS[i]) end end "                                           \
    "end "

const char  vlm_lua_ensure[] =
    TOUCH
    "if redis.call('EXISTS', KEYS[1]) == 0 then"
    "  redis.call('DEL', KEYS[2], KEYS[3])"
    "  redis.call('HSET', KEYS[1], 'epoch', ARGV[4])"
    "  touch('') end "
    "return {'ok'}";

const char  vlm_lua_drop[] =
    "if redis.call('DEL', KEYS[1]) == 0 then return {} end "
    "redis.call('DEL', KEYS[2], KEYS[3])"
    "redis.call('ZREM', KEYS[4], ARGV[1])"
    "return {'ok'}";

const char  vlm_lua_reset[] =
    TOUCH
    "if redis.call('EXISTS', KEYS[1]) == 0 then return {} end "
    "redis.call('DEL', KEYS[2], KEYS[3])"
    "redis.call('HDEL', KEYS[1], 'image')"
    "redis.call('HSET', KEYS[1], 'epoch', ARGV[4])"
    "touch('')"
    "return {'ok'}";

const char  vlm_lua_image[] =
    TOUCH
    "if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[4] then return {} end "
    "touch(ARGV[5])"
    "return {'ok'}";

/* ARGV: 2 entries at most */

const char  vlm_lua_load[] =
    "local s = redis.call('HMGET', KEYS[1], 'epoch', 'image')"
    "if not s[1] then return {} end "
    "local out = {s[1], s[2], string.format('%d', redis.call('LLEN', KEYS[2]))}"
    "if tonumber(ARGV[2]) > 0 then"
    "  for _, e in ipairs(redis.call('LRANGE', KEYS[2], -tonumber(ARGV[2]), -1)) do"
    "    out[#out + 1] = e end end "
    "return out";

/*
 * KEYS: 5 queue; ARGV: 4 epoch, 5 picture, 6 question, 7 answer, 8 key, 9 time before which a key
 * may come again, 10 token, 11 its number, 12 entries to keep
 */

const char  vlm_lua_append[] =
    TOUCH
    "if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[4] then return {'gone'} end "
    "if ARGV[10] ~= '' then"
    "  local first = redis.call('ZRANGE', KEYS[5], 0, 0)[1]"
    "  local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')"
    "  if first ~= ARGV[10] and (first or fence > tonumber(ARGV[11])) then return {'lost'} end "
    "end "
    "if ARGV[8] ~= '' then"
    "  for _, k in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do"
    "    local at = string.find(k, ' ', 1, true)"
    "    if at and string.sub(k, at + 1) == ARGV[8]"
    "      and (tonumber(string.sub(k, 1, at - 1)) or 0) > tonumber(ARGV[9]) then"
    "      return {'twice'} end end end "
    "local max = tonumber(ARGV[12])"
    "local n = math.min(redis.call('LLEN', KEYS[2]) + 2, max)"
    "redis.call('RPUSH', KEYS[2], string.char(0) .. ARGV[6], string.char(n) .. ARGV[7])"
    "redis.call('LTRIM', KEYS[2], -max, -1)"
    "redis.call('RPUSH', KEYS[3], ARGV[2] .. ' ' .. ARGV[8])"
    "redis.call('LTRIM', KEYS[3], -max / 2, -1)"
    "if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'fence', ARGV[11]) end "
    "touch(ARGV[5])"
    "return {'ok', string.format('%d', n)}";

/* KEYS: 1 sessions; ARGV: 1 time: those used before it have expired */

const char  vlm_lua_expire[] =
    "local n = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])"
    "return {string.format('%d', n), string.format('%d', redis.call('ZCARD', KEYS[1]))}";

const char  vlm_lua_known[] =
    "redis.call('EXPIRE', KEYS[1], ARGV[1])"
    "return {redis.call('GET', KEYS[1])}";

const char  vlm_lua_note[] =
    "redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[1])"
    "return {'ok'}";

const char  vlm_lua_shows[] =
    "return {redis.call('GET', KEYS[1])}";

const char  vlm_lua_usable[] =
    "redis.call('SET', KEYS[1], '1', 'EX', 60)"
    "return {'ok'}";

/*
 * KEYS: 1 queue, 2 its times, 3 the last number; ARGV: 1 token, 2 ms that a place lasts.  Numbers
 * are microseconds, so that they go on rising if Redis forgets the last one.
 */

const char  vlm_lua_lease[] =
    "local t = redis.call('TIME')"
    "local us = t[1] * 1000000 + t[2]"
    "local now = math.floor(us / 1000)"
    "local n = redis.call('ZSCORE', KEYS[1], ARGV[1])"
    "if not n then"
    "  n = math.max(us, tonumber(redis.call('GET', KEYS[3]) or '0') + 1)"
    "  redis.call('SET', KEYS[3], string.format('%.0f', n))"
    "  redis.call('ZADD', KEYS[1], string.format('%.0f', n), ARGV[1]) end "
    "redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f', now + ARGV[2]))"
    "for i = 1, 2 do redis.call('PEXPIRE', KEYS[i], 4 * ARGV[2]) end "
    "local state = 'first'"
    "while true do"
    "  local first = redis.call('ZRANGE', KEYS[1], 0, 0)[1]"
    "  if first == ARGV[1] then break end "
    "  local till = tonumber(redis.call('HGET', KEYS[2], first) or '0')"
    "  if till > now then state = 'waits' break end "
    "  redis.call('ZREM', KEYS[1], first)"
    "  redis.call('HDEL', KEYS[2], first) end "
    "return {state, string.format('%.0f', tonumber(n))}";

/* KEYS: of each place 1 queue, 2 its times; ARGV: 1 ms that a place lasts, tokens */

const char  vlm_lua_keep[] =
    "local t = redis.call('TIME')"
    "local till = string.format('%.0f', math.floor(t[1] * 1000 + t[2] / 1000) + ARGV[1])"
    "for i = 1, #KEYS / 2 do"
    "  local q, x, token = KEYS[2 * i - 1], KEYS[2 * i], ARGV[i + 1]"
    "  if redis.call('ZSCORE', q, token) then"
    "    redis.call('HSET', x, token, till)"
    "    redis.call('PEXPIRE', q, 4 * ARGV[1])"
    "    redis.call('PEXPIRE', x, 4 * ARGV[1]) end end "
    "return {'ok'}";

const char  vlm_lua_leave[] =
    "redis.call('ZREM', KEYS[1], ARGV[1])"
    "redis.call('HDEL', KEYS[2], ARGV[1])"
    "return {'ok'}";

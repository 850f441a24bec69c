-- A script that takes 40 ms of its process's CPU time: three quarters at first, then an eighth of the rest before each of
-- eight pieces of output. It ends where output fails, as PHP does. Counting CPU time instead of rounds keeps the cost the
-- same while neighbours slow the processor down.
local COST_S, PIECES = 0.040, 8
local PIECE = string.rep("0123456789", 6516)

local function compute(seconds)
  local stop, x = os.clock() + seconds, 0
  repeat
    for i = 1, 500 do x = (x * 31 + i) % 1000003 end
  until os.clock() >= stop
end

function handle(r)
  r.content_type = "text/plain"
  compute(COST_S * 3 / 4)
  for _ = 1, PIECES do
    compute(COST_S / 4 / PIECES)
    r:puts(PIECE)
    if not r:flush() then return apache2.OK end
  end
  return apache2.OK
end

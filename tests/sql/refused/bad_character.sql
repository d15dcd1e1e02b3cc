-- query: nul
-- escaped: yes
-- sqlstate: 22021
-- at: \x00
SELECT COUNT(*) FROM visits WHERE ward = '\x00'

-- query: half_a_character
-- escaped: yes
-- sqlstate: 22021
-- at: \ud800
SELECT '\ud800'

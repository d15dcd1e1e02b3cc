-- query: nothing
-- sqlstate: 42601
;

-- query: a_comment
-- sqlstate: 42601
/* nothing */

-- query: capital_letter
-- sqlstate: ZP018
-- at: 'North'
SELECT COUNT(*) FROM patients WHERE region = 'North'

-- query: blank_in_a_list
-- sqlstate: ZP018
-- at: ' north'
SELECT COUNT(*) FROM patients WHERE region IN ('south', ' north')

-- query: branch_of_case
-- sqlstate: ZP018
-- at: 'SOUTH'
SELECT SUM(CASE region WHEN 'SOUTH' THEN 1 ELSE 0 END) FROM patients

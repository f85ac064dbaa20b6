-- The leaks that have no next step. A provider may have many leaks and none of these.
CREATE INDEX grants_unscheduled ON grants (provider, application) WHERE state = 'Leaked' AND due = 0;

-- The due time of a grant is the queue. While a step is in progress, due is when
-- its run expires.
UPDATE grants SET due = lease_until WHERE lease_until > 0;
DROP INDEX grants_due;
DROP INDEX grants_lease;
ALTER TABLE grants DROP COLUMN step;
ALTER TABLE grants DROP COLUMN job;
ALTER TABLE grants DROP COLUMN lease_until;
CREATE INDEX grants_due ON grants (provider, due) WHERE due > 0;
CREATE INDEX grants_leaked ON grants (provider, application, ordinal) WHERE state = 'Leaked';
CREATE INDEX applications_namespace ON applications (namespace, pod);
-- The tables of the queue of earlier versions.
DROP TABLE IF EXISTS river_client_queue;
DROP TABLE IF EXISTS river_client;
DROP TABLE IF EXISTS river_job;
DROP TABLE IF EXISTS river_leader;
DROP TABLE IF EXISTS river_queue;
DROP TABLE IF EXISTS river_notification;
DROP TABLE IF EXISTS river_migration;

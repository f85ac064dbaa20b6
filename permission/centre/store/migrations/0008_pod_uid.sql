-- The applications of a pod under any name of its cluster.
CREATE INDEX applications_uid ON applications (pod_uid);
